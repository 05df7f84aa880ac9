"""The plot of a run: CPU in times of the raw SDK's, a dot for each wire, on a logarithmic axis. Pure; plain SVG."""

from __future__ import annotations

import math
from html import escape

from benchmarks.contenders import CONTENDERS
from benchmarks.figures import Results
from benchmarks.goals import WIRE_NAMES

PANELS = {"turn": "one short turn", "loop": "50-turn tool loop", "stream": "a streamed delta"}
COLOURS = {"responses": "#0b6e4f", "chat": "#4c9f70", "anthropic": "#c8553d", "gemini": "#3066be"}
LEAST, MOST = 0.003, 30.0
LEFT, PANEL, GAP, ROW, TOP = 190, 240, 24, 24, 64


def x(times: float) -> float:
    """Place of a ratio within a panel; what lies outside of the axis stands at its end."""
    inside = min(max(times, LEAST), MOST)
    return PANEL * math.log(inside / LEAST) / math.log(MOST / LEAST)


def svg(results: Results) -> str:
    """The picture."""
    whos = [
        who for who in CONTENDERS if any((case, wire, who) in results.samples for case in PANELS for wire in COLOURS)
    ]
    height = TOP + ROW * len(whos) + 30
    width = LEFT + len(PANELS) * (PANEL + GAP)
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12" role="img">',
        "<title>CPU in times of the raw SDK's typed call; further left is cheaper</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, (wire, colour) in enumerate(COLOURS.items()):
        at = LEFT + number * 150
        made.append(
            f'<circle cx="{at}" cy="16" r="5" fill="{colour}"/><text x="{at + 10}" y="20">{WIRE_NAMES[wire]}</text>'
        )
    for row, who in enumerate(whos):
        weight = ' font-weight="bold"' if who.startswith("ours") else ""
        y = TOP + ROW * row + 16
        made.append(f'<text x="{LEFT - 12}" y="{y}" text-anchor="end"{weight}>{escape(CONTENDERS[who].title)}</text>')
    for number, (case, name) in enumerate(PANELS.items()):
        made += _panel(results, case, name, whos, LEFT + number * (PANEL + GAP))
    return "\n".join([*made, "</svg>"]) + "\n"


def _panel(results: Results, case: str, name: str, whos: list[str], left: int) -> list[str]:
    bottom = TOP + ROW * len(whos)
    made = [f'<text x="{left + PANEL / 2}" y="{TOP - 18}" text-anchor="middle" font-weight="bold">{name}</text>']
    for tick in (0.01, 0.1, 1, 10):
        at, stroke = left + x(tick), "#333" if tick == 1 else "#ccc"
        made.append(f'<line x1="{at:.1f}" y1="{TOP - 8}" x2="{at:.1f}" y2="{bottom}" stroke="{stroke}"/>')
        made.append(f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#555">{tick:g}×</text>')
    for row, who in enumerate(whos):
        for wire, colour in COLOURS.items():
            times = results.ratio(case, wire, who, "raw_sdk", "cpu")
            if times is not None:
                hint = f"<title>{escape(CONTENDERS[who].title)}, {WIRE_NAMES[wire]}: {times:.3g}×</title>"
                place = f'cx="{left + x(times):.1f}" cy="{TOP + ROW * row + 12}"'
                made.append(f'<circle {place} r="5" fill="{colour}" fill-opacity="0.8">{hint}</circle>')
    return made
