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
    assert page.locator("#turns img").count() == 0
    assert page.locator("#turns mark").all_text_contents() == ["4021", "5150"]
    assert HOSTILE in page.text_content("#turns")


def test_a_refusal_names_the_path(page: Any, served: Callable[[Any], str]) -> None:
    page.goto(served(make_app(ScriptedEngine())) + "/")
    page.fill("#schema", '{"n": {"type": "enum"}}')
    page.click("#run")
    page.wait_for_selector("#note.error")
    assert "schema.n.options" in page.text_content("#note")
