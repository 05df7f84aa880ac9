"""The page in a real browser: values, evidence in its place, and content that stays content."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pollux_like.typed import ScriptedEngine
from pollux_like.typed.server import make_app

HOSTILE = (
    "<img src=x onerror=\"document.title='broken in'\"><script>document.title='broken in'</script> 4021 👩‍👩‍👧 5150"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium here: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened = browser.new_page()
    foreign: list[str] = []
    opened.on("request", lambda request: foreign.append(request.url) if "127.0.0.1" not in request.url else None)
    opened.on("pageerror", lambda error: foreign.append(str(error)))
    yield opened
    opened.close()
    assert foreign == []


def read(page: Any) -> None:
    page.click("#run")
    page.locator("#note", has_text="Done").wait_for()


def test_the_claim_chat_shows_values_and_evidence(page: Any, served: Callable[[Any], str]) -> None:
    engine = ScriptedEngine({"policy_number": "3201456789012345", "reply": "Thank you."})
    page.goto(served(make_app(engine)) + "/")
    page.locator("#model", has_text="scripted").wait_for()
    assert page.input_value("#preset") == "0"
    assert "27" in page.text_content("#preset option")
    read(page)
    assert page.text_content("tr[data-field=policy_number] .value") == '"3201456789012345"'
    assert page.text_content(".turn mark") == "3201456789012345"
    assert json.loads(page.text_content("#answer"))["values"]["reply"] == "Thank you."


def test_rules_and_forgeries_are_shown(page: Any, served: Callable[[Any], str]) -> None:
    engine = ScriptedEngine({"claim_status": "pending", "user_claims_approved": "true", "reply": "approved"})
    page.goto(served(make_app(engine)) + "/")
    page.select_option("#preset", "1")
    read(page)
    assert "on[0]" in page.text_content("tr[data-field=user_claims_approved]")
    assert "match[0]" in page.text_content("tr[data-field=reply]")
    assert "forged_role" in page.text_content(".turn.flagged .role")


def test_content_stays_inert_and_marks_stand_where_the_text_is(page: Any, served: Callable[[Any], str]) -> None:
    page.goto(served(make_app(ScriptedEngine({"n": "5150"}))) + "/")
    page.fill("#messages", f"user: {HOSTILE}")
    page.fill("#schema", '{"n": {"type": "string", "extract": true, "pattern": "[0-9]{4}"}}')
    read(page)
    assert page.title() == "Typed conversations"
    assert (
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=document.title=1>')") is None
    )
    page.wait_for_function("[...document.images].every((image) => image.complete)")
    assert page.title() == "Typed conversations", "the policy of the page runs no script but its own"
    assert page.locator("#turns img").count() == 0
    assert page.locator("#turns mark").all_text_contents() == ["4021", "5150"]
    assert HOSTILE in page.text_content("#turns")


def test_a_refusal_names_the_path(page: Any, served: Callable[[Any], str]) -> None:
    page.goto(served(make_app(ScriptedEngine())) + "/")
    page.fill("#schema", '{"n": {"type": "enum"}}')
    page.click("#run")
    page.wait_for_selector("#note.error")
    assert "schema.n.options" in page.text_content("#note")


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ("[null]", "messages[0]"), ("[1]", "messages[0]"), ('[{"role": "user", "content": [null]}]', "messages[0].content[0]"),
        ('[{"role": "user", "content": 5}]', "messages[0].content"), ("[", "no JSON"), ("", "neither messages nor context"),
    ],
)  # fmt: skip
def test_messages_that_are_none_are_an_error_that_is_shown(
    page: Any, served: Callable[[Any], str], messages: str, says: str
) -> None:
    page.goto(served(make_app(ScriptedEngine())) + "/")
    page.fill("#messages", messages)
    page.click("#run")
    page.locator("#note.error", has_text=says).wait_for()
    assert page.is_enabled("#run")


def test_an_answer_that_ends_early_is_an_error_that_is_shown(page: Any, served: Callable[[Any], str]) -> None:
    page.goto(served(make_app(ScriptedEngine())) + "/")
    page.route("**/v1/typed/stream", lambda route: route.fulfill(status=200, body=""))
    page.click("#run")
    page.locator("#note.error", has_text="ended before").wait_for()


def test_a_field_of_any_name_is_shown_as_it_comes(page: Any, served: Callable[[Any], str]) -> None:
    page.goto(served(make_app(ScriptedEngine())) + "/")
    page.fill("#schema", '{"__proto__": {"type": "int"}, "constructor": {"type": "bool"}}')
    read(page)
    assert page.locator("#values tr").evaluate_all("rows => rows.map(row => row.dataset.field)") == [
        "__proto__",
        "constructor",
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_read_on_a_narrow_screen_and_by_keyboard(
    browser: Any, served: Callable[[Any], str], scheme: str
) -> None:
    opened = browser.new_page(color_scheme=scheme, viewport={"width": 360, "height": 740})
    opened.goto(served(make_app(ScriptedEngine())) + "/")
    order = []
    for _ in range(6):
        opened.keyboard.press("Tab")
        order.append(opened.evaluate("document.activeElement.id"))
    assert order == ["preset", "system", "context", "messages", "schema", "run"]
    opened.keyboard.press("Enter")
    opened.locator("#note", has_text="Done").wait_for()
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    low = opened.evaluate("""() => {
      const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      const light = (color) => { const [r, g, b] = color.match(/[0-9.]+/g).map(Number); return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
      const ground = matchMedia("(prefers-color-scheme: dark)").matches ? light("rgb(18, 18, 18)") : 1;
      const words = [...document.querySelectorAll(".accept, .review, td, label")].map((e) => light(getComputedStyle(e).color));
      return Math.min(...words.map((word) => (Math.max(word, ground) + 0.05) / (Math.min(word, ground) + 0.05)));
    }""")
    assert low >= 4.5, "the contrast of WCAG 2.2, 1.4.3"
    opened.close()
