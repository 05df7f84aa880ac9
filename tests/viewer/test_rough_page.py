"""The page in a real browser when answers are late, stores change beneath it, and texts and numbers are extreme."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from viewer import talks
from viewer.conftest import Site, done, until

from pollux_like import Input, Usage
from pollux_like.testing import Scripted, say

TURN = ".turn[data-seq='{}']:not(.empty)"


@pytest.fixture
def late(open_page: Callable[..., Any]) -> Callable[..., tuple[Any, Callable[[], None]]]:
    """A page whose answers of one kind are held back, and what lets them come."""

    def opened(kind: str, address: str = "") -> tuple[Any, Callable[[], None]]:
        page = open_page("#view=list")
        page.wait_for_selector(".entry")
        held: list[Any] = []
        page.route(f"**/api/{kind}?*", lambda route: held.append(route))
        page.evaluate("hash => { location.hash = hash }", address)
        until(lambda: page.wait_for_timeout(5) or held)

        def come() -> None:
            for route in held:
                route.continue_()
            page.unroute(f"**/api/{kind}?*")

        return page, come

    return opened


def goes(page: Any, address: str) -> None:
    page.evaluate("hash => { location.hash = hash }", address)


def test_a_turn_that_is_asked_for_before_the_conversation_is_there_is_gone_to(late: Callable[..., Any]) -> None:
    page, come = late("conversation", "#id=long&turn=5")
    goes(page, "#id=long&turn=4321")
    come()
    page.wait_for_selector(TURN.format(4321))
    assert page.evaluate("document.activeElement.dataset.seq") == "4321"


def test_an_answer_that_comes_late_changes_nothing_else(late: Callable[..., Any]) -> None:
    page, come = late("conversation", "#id=long")
    goes(page, "#id=support-4711")
    come()
    page.wait_for_selector(TURN.format(1))
    page.wait_for_timeout(50)
    assert "support-4711" in page.text_content(".head")
    page, come = late("playground", "#view=playground")
    goes(page, "#id=support-4711")
    page.wait_for_selector(TURN.format(1))
    with page.expect_response("**/api/playground?*"):
        come()
    page.wait_for_timeout(50)
    assert "support-4711" in page.text_content(".head"), "the engine was ready after the tab was left"


def test_what_another_worker_changes_between_two_pages_is_read_anew(open_page: Callable[..., Any], site: Site) -> None:
    done(lambda: talks.long(site.store, "moving", 400, scope="tenant-7"))
    page = open_page("#scope=tenant-7&id=moving")
    page.wait_for_selector(TURN.format(1))
    done(lambda: site.store.delete("moving", scope="tenant-7"))
    done(lambda: talks.long(site.store, "moving", 300, scope="tenant-7"))
    page.focus(".scroll")
    page.keyboard.press("End")
    page.wait_for_selector(TURN.format(300))
    assert page.text_content(".tools .facts") == "of 300"
    assert page.locator(".turn.empty").count() == 0
    done(lambda: site.store.delete("moving", scope="tenant-7"))
    done(lambda: site.store.create("moving", scope="tenant-7"))
    page.keyboard.press("Home")
    page.locator(".blank", has_text="No turn is complete yet").wait_for()


def test_a_sheet_that_no_browser_has_room_for_is_scrolled_all_the_same(
    open_page: Callable[..., Any], site: Site
) -> None:
    done(lambda: talks.long(site.store, "endless", 60_000, scope="tenant-7"))
    page = open_page("#scope=tenant-7&id=endless&turn=30000")
    page.wait_for_selector(TURN.format(30_000))
    assert page.evaluate("document.querySelector('.scroll').scrollHeight") == 10_000_000
    place = """(() => { const top = document.querySelector('.scroll').getBoundingClientRect().top;
      const row = [...document.querySelectorAll('.turn')].find((one) => one.getBoundingClientRect().bottom > top + 1);
      return row ? Number(row.dataset.seq) : 0; })()"""
    assert until(lambda: page.evaluate(place) == 30_000)
    page.hover(".scroll")
    for _ in range(10):
        page.mouse.wheel(0, 200)
        page.wait_for_timeout(20)
    until(lambda: 30_004 < page.evaluate(place) < 30_016)
    for _ in range(10):
        page.mouse.wheel(0, -200)
        page.wait_for_timeout(20)
    until(lambda: page.evaluate(place) == 30_000)
    bar = "part => { const s = document.querySelector('.scroll'); s.scrollTop = (s.scrollHeight - s.clientHeight) * part; }"
    for part, least, most in ((0.25, 14_000, 16_000), (0.75, 44_000, 46_000), (1, 59_990, 60_000), (0, 1, 1)):
        page.evaluate(bar, part)
        until(lambda low=least, high=most: low <= page.evaluate(place) <= high)
    page.focus(".scroll")
    page.keyboard.press("End")
    page.wait_for_selector(TURN.format(60_000))
    done(lambda: site.store.delete("endless", scope="tenant-7"))


def test_numbers_of_any_size_are_read_off_the_plot(open_page: Callable[..., Any], site: Site) -> None:
    usages = [Usage.of(input=0, output=0), Usage.of(input=2**53, output=2**53, cached=2**52, reasoning=7), None]
    done(lambda: talks.told(site.store, "sizes", usages, scope="tenant-7"))
    page = open_page("#scope=tenant-7&id=sizes")
    page.wait_for_selector(TURN.format(1))
    page.keyboard.press("2")
    page.wait_for_selector("svg.plot")
    inside = "[...document.querySelectorAll('.plot text')].map((one) => one.getBBox()).every((box) => box.x >= 0)"
    assert page.evaluate(inside)
    assert "1 turn of 3 came without usage" in page.text_content("#panel-usage")
    page.focus(".stage")
    page.keyboard.press("End")
    assert page.text_content(".readout") == "Turn 3: no usage is known"


def test_texts_keep_to_their_place_and_are_copied_to_the_letter(open_page: Callable[..., Any], site: Site) -> None:
    flood = "Z" + "\u0301\u0302\u0303\u0317" * 200
    hidden = "a\u3164b\u115fc\u034fd\uffa0e"
    said = [
        flood,
        hidden,
        "A" * 5000,
        'Tab\tand  two spaces,\n\n  "quoted" \U0001f469\u200d\U0001f4bb line\n',
        "ae\u0001" * 7900,
    ]
    done(lambda: talks.told(site.store, "texts", [None] * 5, scope="tenant-7", said=said, model="m" * 200))
    page = open_page("#scope=tenant-7&id=texts", viewport={"width": 320, "height": 700})
    page.wait_for_selector(TURN.format(1))
    text = f"{TURN.format('{}')} .user .text"
    assert page.evaluate("getComputedStyle(document.querySelector('.text')).overflow") == "clip"
    goes(page, "#scope=tenant-7&id=texts&turn=2")
    page.wait_for_selector(TURN.format(2))
    assert page.text_content(text.format(2)) == "aU+3164bU+115FcU+034FdU+FFA0e"
    fits = "[...document.querySelectorAll('.turn header')].every((one) => one.scrollWidth <= one.clientWidth)"
    assert page.evaluate(fits), "the name of a model is wrapped"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    goes(page, "#scope=tenant-7&id=texts&turn=3")
    page.wait_for_selector(TURN.format(3))
    nodes = page.eval_on_selector(text.format(3), "one => [...one.childNodes].map((node) => node.length)")
    assert nodes == [1000] * 5, "a word without end is laid out in pieces"
    copied = "one => { getSelection().selectAllChildren(one); return getSelection().toString(); }"
    assert page.eval_on_selector(text.format(3), copied) == said[2]
    goes(page, "#scope=tenant-7&id=texts&turn=4")
    page.wait_for_selector(TURN.format(4))
    assert page.eval_on_selector(text.format(4), copied).strip() == said[3].strip()
    page.fill("#find", "e")
    page.press("#find", "Enter")
    goes(page, "#scope=tenant-7&id=texts&turn=5&words=e")
    page.wait_for_selector(f"{TURN.format(5)} mark")
    assert page.locator("#panel-transcript mark").count() <= 3 * 2000, "marks are bounded"


def test_the_tree_shows_where_one_is(open_page: Callable[..., Any], site: Site) -> None:
    async def forks() -> None:
        root = await site.store.create("root", scope="tenant-7")
        await root.interact(talks.ENV, Input("Hello"), Scripted([say("Hello")]).config)
        for number in range(60):
            await site.store.fork("root", f"fork-{number}", scope="tenant-7")

    done(forks)
    page = open_page("#scope=tenant-7&id=fork-50")
    page.wait_for_selector(TURN.format(1))
    page.keyboard.press("3")
    page.wait_for_selector("[role=tree]")
    seen = "(() => { const box = document.querySelector('[aria-current=true][role=treeitem]').getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight + 1; })()"
    assert page.evaluate(seen)


def test_a_tab_that_is_clicked_before_the_store_has_answered_asks_for_no_scope_without_a_name(
    open_page: Callable[..., Any], site: Site
) -> None:
    page = open_page()
    page.wait_for_selector(".entry")
    held: list[Any] = []
    page.route("**/api/store?*", lambda route: held.append(route))
    page.reload()
    until(lambda: page.wait_for_timeout(5) or held)
    page.click("#to-playground")
    page.wait_for_timeout(50)
    held[0].continue_()
    page.wait_for_selector(".go")


def test_the_keys_of_the_tabs_take_the_focus_along(open_page: Callable[..., Any]) -> None:
    page = open_page("#id=support-4711&turn=2")
    page.wait_for_selector(TURN.format(2))
    for key, name in (("2", "usage"), ("3", "branches"), ("1", "transcript")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == f"tab-{name}"
