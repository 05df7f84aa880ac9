"""What values show of themselves: short, in a terminal and in a notebook, and never what was said or what is secret."""

from __future__ import annotations

import pytest

from pollux_like import (
    Config,
    Environment,
    Event,
    Finish,
    Input,
    Message,
    Notice,
    Output,
    Session,
    Source,
    ToolCall,
    ToolDeclaration,
    ToolResult,
    Usage,
    handoff,
    interact,
)
from pollux_like.provider import Reply, Request
from pollux_like.testing import Scripted, call, say, think

pytestmark = pytest.mark.anyio
SAID = "SECRET <b>text</b>"
TOOL = ToolDeclaration("look_up", "Look it up", {"type": "object", "properties": {"q": {"type": "string"}}})


async def turn() -> tuple[Environment, Input, Output]:
    environment = Environment(
        instructions=SAID, tools=[TOOL], sources=[Source.from_text(SAID, name="a.txt")], metadata={"k": SAID}
    )
    given = Input(SAID, history=[])
    model = Scripted([think(SAID), say(SAID), call("look_up", {"q": SAID}, id="call_1")])
    return environment, given, await interact(environment, given, model.config)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Usage(), "Usage()"),
        (Usage(input_tokens=3), "Usage(input_tokens=3)"),
        (Message("user", "hello"), "Message(role='user', content=<5 characters>)"),
        (ToolCall("c1", "f", "{}"), "ToolCall(id='c1', name='f', arguments_text=<2 characters>)"),
        (ToolResult("c1", "no", is_error=True), "ToolResult(call_id='c1', content=<2 characters>, is_error=True)"),
        (Event("text_delta", text="hi"), "Event(type='text_delta', text=<2 characters>)"),
        (Notice("cache", "x" * 100), f"Notice(kind='cache', message='{'x' * 76}...)"),
        (Config("openai", "gpt-5", api_key="sk-1"), "Config(provider='openai', model='gpt-5', api_key=<set>)"),
        (Source.from_bytes(b"%PDF-1", mime_type="application/pdf"), "Source(kind='pdf', mime_type='application/pdf', data=<6 bytes>)"),
    ],
)  # fmt: skip
def test_a_repr_holds_what_is_not_the_default(value: object, shown: str) -> None:
    assert repr(value) == shown


async def test_an_output_is_one_line_however_much_it_holds() -> None:
    message = Message("assistant", "x" * 10_000)
    output = Output(text="x" * 10_000, messages=(message,) * 100, notices=tuple(Notice("a", "b") for _ in range(9)))
    assert repr(output) == (
        "Output(text=<10,000 characters>, messages=<100>, notices=(Notice(kind='a', message='b'), "
        "Notice(kind='a', message='b'), Notice(kind='a', message='b'), +6))"
    )


async def test_nothing_said_and_no_secret_is_shown() -> None:
    environment, given, output = await turn()
    assert output.continuation is not None
    config = Config("openai", "gpt-5", api_key="sk-SECRET")
    for value in (environment, given, output, output.continuation, output.messages, output.tool_calls, config,
                  handoff(output.continuation), Session(config), Event("done", output=output)):  # fmt: skip
        assert "SECRET" not in repr(value)
        assert len(repr(value)) < 700
        shown = getattr(value, "_repr_html_", lambda: "")()
        assert "SECRET" not in shown


async def test_a_notebook_shows_the_same_as_a_table_and_runs_none_of_it() -> None:
    _, _, output = await turn()
    assert output.continuation is not None
    html = output.continuation._repr_html_()
    assert html.startswith("<table><caption")
    assert '<th style="text-align:left">turns</th><td style="text-align:left">1</td>' in html
    noted = Output(notices=(Notice("<script>", "x"),))
    assert "<script>" not in noted._repr_html_()
    assert "&lt;script&gt;" in noted._repr_html_()


class Odd:
    """An object of the application that compares and counts in its own way."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("I compare with nothing")

    def __len__(self) -> int:
        raise RuntimeError("I have no length")

    __hash__ = None  # type: ignore[assignment]


def test_a_client_that_compares_oddly_is_shown_as_set() -> None:
    config = Config("scripted", client=Odd())
    assert repr(config) == "Config(provider='scripted', client=<set>)"
    assert "&lt;set&gt;" in config._repr_html_()


def test_what_a_vendor_is_given_and_gives_shows_no_text() -> None:
    reply = Reply((f'{{"text":"{SAID}"}}',), Finish("stop"), text=SAID, reasoning=SAID)
    request = Request("m", (), (Message("user", SAID),), instructions=SAID)
    assert "SECRET" not in f"{reply!r} {request!r}"
