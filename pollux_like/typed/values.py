"""Values and their texts: what the model writes for a value, and the value that a text stands for.

Numbers in conversations are grouped in many ways. A last separator with exactly three digits behind it groups an int;
in a float a point is decimal and a comma groups. Dates of figures are day first where a point separates, and with a
slash only where one of the two cannot be a month; others are no candidates, since they say two things.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from pollux_like.typed.schema import Field

_MONTHS = {
    1: "january januar janvier enero gennaio januari", 2: "february februar février febrero febbraio februari",
    3: "march märz mars marzo maret", 4: "april avril abril aprile", 5: "may mai mayo maggio mei",
    6: "june juni juin junio giugno", 7: "july juli juillet julio luglio", 8: "august août agosto agustus",
    9: "september septembre septiembre settembre", 10: "october oktober octobre octubre ottobre",
    11: "november novembre noviembre nopember", 12: "december dezember décembre diciembre dicembre desember",
}  # fmt: skip
_MONTH = {
    word: number
    for number, names in _MONTHS.items()
    for name in names.split()
    for word in (name, *((name[:3],) if name[:3] != "jui" else ()))
}


def rendered(value: Any) -> str:
    """The text of a value as it stands in a prompt."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "; ".join(rendered(item) for item in value) or "null"  # pyright: ignore[reportUnknownVariableType]
    return str(value)


def value_of(field: Field, text: str) -> Any:
    """The value that the text stands for. Raises ValueError where it is none of the field's type or out of bounds."""
    value = _parsed(field, text)
    if field.minimum is not None and value < field.minimum:
        raise ValueError("below the minimum")
    if field.maximum is not None and value > field.maximum:
        raise ValueError("above the maximum")
    return value


def _parsed(field: Field, text: str) -> Any:
    match field.type:
        case "bool":
            return {"true": True, "false": False}[text]
        case "int":
            return _int(text)
        case "float":
            return _float(text)
        case "date":
            return read_date(text).isoformat()
        case _:
            return text


def _int(text: str) -> int:
    plain = re.sub(r"[.,' ](?=[0-9]{3}(?:[.,' ]|$))", "", text)
    if len(plain) > 40 or "_" in plain:  # Python reads 1_000 as a number
        raise ValueError("no int")
    return int(plain)


def _float(text: str) -> float:
    plain = text.replace("'", "").replace(" ", "")
    last = max(plain.rfind("."), plain.rfind(","))
    if last >= 0:
        whole, mark, fraction = plain[:last], plain[last], plain[last + 1 :]
        groups = mark == "," and len(fraction) == 3 and "." not in whole
        groups = groups or whole.count(mark) > 0
        whole = whole.replace(",", "").replace(".", "")
        plain = f"{whole}{fraction}" if groups else f"{whole}.{fraction}"
    value = float(plain)
    if not abs(value) <= 1e300 or "_" in plain:  # NaN is below no bound
        raise ValueError("no float")
    return value


def read_date(text: str) -> date:
    """The day that a text names. Raises ValueError for none, and for one that can be read in two ways."""
    try:
        return _day(text.strip())
    except OverflowError:
        raise ValueError("no date") from None


def _day(plain: str) -> date:
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", plain):
        return date.fromisoformat(plain)
    figures = [int(figure) for figure in re.findall(r"[0-9]+", plain)]
    if "年" in plain and len(figures) == 3:
        return date(*figures)
    word = re.search(r"[^\W\d_]+", plain)
    if word is not None and len(figures) == 2:
        name = word.group().lower()
        month = _MONTH.get(name) or _MONTH.get(name[:3] if len(name) == 3 else "")
        if month is None:
            raise ValueError("no month")
        return date(figures[1], month, figures[0])
    if len(figures) == 3 and figures[2] > 31:
        day, month, year = figures
        if "/" in plain and day <= 12 and month <= 12 and day != month:
            raise ValueError("two readings")
        if "/" in plain and day <= 12 < month:
            day, month = month, day
        return date(year, month, day)
    raise ValueError("no date")
