"""The page in a real browser: by keyboard, in the dark, on a narrow screen, long, and with content that attacks it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from viewer import talks
from viewer.conftest import CONTRAST, Site, done, until

TURN = ".turn[data-seq='{}']:not(.empty)"


def seen_turns(page: Any) -> list[int]:
    return page.eval_on_selector_all(".turn", "rows => rows.map(row => Number(row.dataset.seq))")


def test_ten_thousand_turns_are_a_page_of_bounded_size(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.wait_for_selector(".entry")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator(".entry", has_text="Ten thousand").click()
    page.wait_for_selector(TURN.format(1))
    assert len(asked) <= 4
    assert page.evaluate("document.querySelectorAll('*').length") < 1500
    assert page.text_content(".tools .facts") == "of 10,000"
    high = page.evaluate("document.querySelector('.scroll').scrollHeight")
    page.focus(".scroll")
    page.keyboard.press("End")
    page.wait_for_selector(TURN.format(10_000))
    bottom = page.evaluate(
        "(() => { const s = document.querySelector('.scroll'); return [s.scrollTop + s.clientHeight, s.scrollHeight]; })()"
    )
    assert abs(bottom[0] - bottom[1]) < 2
    assert abs(bottom[1] - high) < high / 50, "the scroll bar told the length from the beginning"
    page.evaluate("document.querySelector('.scroll').scrollTop = document.querySelector('.scroll').scrollHeight / 2")
    middle = until(lambda: [seq for seq in seen_turns(page) if 4_500 < seq < 5_500])
    page.wait_for_selector(TURN.format(middle[0]))
    assert seen_turns(page) == list(range(seen_turns(page)[0], seen_turns(page)[-1] + 1)), "no gap, no turn twice"
    page.keyboard.press("g")
    page.keyboard.type("7777")
    page.keyboard.press("Enter")
    page.wait_for_selector(TURN.format(7_777))
    assert page.evaluate("document.activeElement.dataset.seq") == "7777"
    assert page.evaluate("document.querySelectorAll('*').length") < 1500
    assert len(asked) <= 12


def test_scrolling_meets_every_turn_once_and_stays_where_it_is(open_page: Callable[..., Any]) -> None:
    page = open_page("#id=long&turn=5000")
    page.wait_for_selector(TURN.format(5_000))
    place = "document.querySelector(\"[data-seq='5000']\").getBoundingClientRect().top - document.querySelector('.scroll').getBoundingClientRect().top"
    assert abs(page.evaluate(place)) < 2
    page.hover(".scroll")
    first = until(lambda: seen_turns(page))[0]
    for _ in range(12):
        page.mouse.wheel(0, 300)
        turns = seen_turns(page)
        assert turns == list(range(turns[0], turns[-1] + 1))
    assert until(lambda: seen_turns(page)[0] > first)


def test_words_are_found_in_a_long_conversation(open_page: Callable[..., Any]) -> None:
    page = open_page("#id=long")
    page.wait_for_selector(TURN.format(1))
    page.keyboard.press("f")
    page.keyboard.type("question 8123?")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{TURN.format(8123)} mark")
    assert page.text_content(f"{TURN.format(8123)} mark") == "Question 8123?"
    assert "1 of 1 turn" in page.text_content(".tools")
    page.fill("#find", "fox")
    page.keyboard.press("Enter")
    until(lambda: "and more" in page.text_content(".tools"))
    page.fill("#find", "nowhere at all")
    page.keyboard.press("Enter")
    until(lambda: "not found" in page.text_content(".tools"))


def test_a_search_leads_to_the_turn(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.wait_for_selector(".entry")
    page.keyboard.press("/")
    page.keyboard.type("SEAT 12")
    page.keyboard.press("Enter")
    page.locator("#status", has_text="messages").wait_for()
    page.locator(".entry", has_text="support-4711 · turn 4 · assistant").click()
    page.wait_for_selector(f"{TURN.format(4)} mark")
    assert page.text_content(f"{TURN.format(4)} mark").lower() == "seat 12"
    page.fill("#search", "aisle")
    page.press("#search", "Enter")
    page.locator("#list h2", has_text="Conversations").wait_for()
    assert page.locator("#list .entry").first.text_content().startswith("Aisle instead")


def test_the_page_is_used_by_keyboard_alone(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.wait_for_selector(".entry")
    page.keyboard.press("/")
    for _ in range(6):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.textContent").startswith("Booking a seat")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(TURN.format(1))
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.dataset.seq") == "2"
    page.keyboard.press("k")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.dataset.seq") == "1"
    assert page.locator(f"{TURN.format(1)} details[open]").count() == 0
    page.keyboard.press("o")
    assert page.text_content(f"{TURN.format(1)} details[open] pre") == '{\n  "city": "Lisbon",\n  "units": "metric"\n}'
    page.keyboard.press("o")
    assert page.locator("details[open]").count() == 0
    for key, panel in (("2", "usage"), ("3", "branches"), ("4", "details"), ("1", "transcript")):
        page.keyboard.press(key)
        assert page.locator(f"#panel-{panel}").is_visible()
        assert page.locator("[role=tabpanel]:visible").count() == 1
    page.keyboard.press("?")
    assert page.locator("dialog#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("dialog#keys").is_visible()
    page.keyboard.press("f")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    until(lambda: "id=" not in page.url)
    assert page.locator(".turn").count() == 0


def test_refusals_open_calls_and_pending_inputs_are_marked(open_page: Callable[..., Any]) -> None:
    page = open_page("#id=support-4711&turn=6")
    page.wait_for_selector(TURN.format(6))
    assert "waits for its result" in page.text_content(f"{TURN.format(6)} .call summary")
    assert "waits" not in page.text_content(f"{TURN.format(1)} .call summary")
    assert page.text_content(f"{TURN.format(5)} .refusal .text") == "I cannot do that."
    assert "1 open tool call" in page.text_content(".head")
    assert "result of get_weather" in page.text_content(f"{TURN.format(2)} .result summary")
    page.keyboard.press("4")
    assert '"big": 12345678901234567890' in page.text_content(".details pre"), "no digit is lost"
    page.goto(page.url.partition("#")[0] + "#id=waits")
    page.locator(".waiting", has_text="Are you there?").wait_for()


def test_usage_is_a_plot_that_is_read_in_three_ways(open_page: Callable[..., Any]) -> None:
    page = open_page("#id=long")
    page.wait_for_selector(TURN.format(1))
    page.keyboard.press("2")
    page.wait_for_selector("svg.plot")
    assert 200 < page.locator("svg.plot rect").count() <= 481
    assert page.locator(".legend li").all_text_contents()[1] == "Input from the cache 4,996,000"
    page.focus(".stage")
    page.keyboard.press("ArrowRight")
    said = page.get_attribute(".stage", "aria-valuetext")
    assert said.startswith("Turns 85 to 168, mean: input 1")
    assert page.text_content(".readout") == said
    box = page.locator(".stage").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + 60)
    until(lambda: "to 10,000" in page.text_content(".readout"))
    page.click(".table summary")
    assert page.locator(".table tbody tr").count() == 120
    page.focus(".stage")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(TURN.format(85))
    assert page.evaluate("document.activeElement.dataset.seq") == "85"


def test_branches_are_a_tree_that_leads_to_them(open_page: Callable[..., Any]) -> None:
    page = open_page("#id=support-4711")
    page.wait_for_selector(TURN.format(1))
    page.keyboard.press("3")
    page.wait_for_selector("[role=tree]")
    levels = page.eval_on_selector_all(
        "[role=treeitem]", "items => items.map(item => [item.ariaLevel, item.textContent])"
    )
    assert [level for level, _ in levels] == ["1", "2", "3", "2"]
    assert "support-4711-b-late" in levels[2][1]
    assert "leaves its parent after turn 4" in levels[2][1]
    page.focus("[role=treeitem][aria-current]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator(".head", has_text="support-4711-b-late").wait_for()
    page.wait_for_selector(TURN.format(4))


def test_hostile_content_is_inert_and_the_page_goes_on(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.locator(".entry", has_text="onerror").click()
    page.wait_for_selector(TURN.format(1))
    assert page.title() == talks.HOSTILE_TITLE
    assert page.text_content(".head .facts").startswith(talks.HOSTILE_ID)
    shown = page.text_content(f"{TURN.format(1)} .user .text")
    assert shown == re.sub(
        "[\x00\x1b\u202e\u202c\u200b\u2066\u2069\U000e0041]", lambda found: f"U+{ord(found[0]):04X}", talks.HOSTILE
    )
    page.focus(".scroll")
    page.keyboard.press("Home")
    page.keyboard.press("o")
    page.wait_for_selector(f"{TURN.format(1)} details[open] pre")
    assert page.locator("main script, main img, main b, main iframe, main a[href^='javascript']").count() == 0
    page.keyboard.press("j")
    page.keyboard.press("o")
    assert "error" in page.text_content(f"{TURN.format(2)} .result summary")
    page.keyboard.press("End")
    page.wait_for_selector(TURN.format(3))
    assert "U+202E ×5000" in page.text_content(f"{TURN.format(3)} .user .text")
    said = "document.querySelector(\"[data-seq='3'] .assistant .text\").textContent"
    for long in (500_000, 1_000_000):
        page.locator(f"{TURN.format(3)} .assistant .whole").click()
        until(lambda expected=long: page.evaluate(f"{said}.length") == expected)
    assert page.locator(f"{TURN.format(3)} .assistant .whole").count() == 0
    assert page.evaluate(f"{said} === 'x y '.repeat(250000)")
    for key in "234":
        page.keyboard.press(key)
    page.locator(".details pre", has_text="</script><img src=x onerror=alert(1)>").wait_for()
    page.reload()
    page.wait_for_selector(TURN.format(1))
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<i id=probe></i>')")
    assert page.title() == talks.HOSTILE_TITLE
    page.keyboard.press("/")
    page.keyboard.type("<script>document")
    page.keyboard.press("Enter")
    page.locator("#status", has_text="messages").wait_for()
    assert page.locator("#list script, #list img").count() == 0


def test_the_policy_runs_no_script_but_the_pages_own(browser: Any, site: Site) -> None:
    context = browser.new_context()
    site.known(context)
    page = context.new_page()
    page.goto(site.base)
    page.wait_for_selector(".entry")
    page.evaluate("""() => {
      document.body.insertAdjacentHTML('beforeend', '<img src=/page/none.svg onerror="document.title=1"><a id=bad href="javascript:document.title=1">x</a>');
      const script = document.createElement('script'); script.textContent = 'document.title = 1'; document.body.append(script);
    }""")
    page.evaluate("document.getElementById('bad').click()")
    page.wait_for_timeout(100)
    assert page.title() == "Conversations"
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_shows_one_thing_at_a_time_without_a_scroll_bar_below(
    open_page: Callable[..., Any], scheme: str
) -> None:
    page = open_page(color_scheme=scheme, viewport={"width": 360, "height": 740}, reduced_motion="reduce")
    page.wait_for_selector(".entry")
    fits = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(fits)
    assert not page.locator("main").is_visible()
    page.locator(".entry", has_text="onerror").click()
    page.wait_for_selector(TURN.format(1))
    assert not page.locator(".side").is_visible()
    assert page.evaluate(fits)
    for tab in ("usage", "branches", "details", "transcript"):
        page.click(f"#tab-{tab}")
        assert page.evaluate(fits), tab
    page.click(".back")
    until(lambda: page.locator(".side").is_visible())
    page.goto(page.url.partition("#")[0] + "#id=support-4711&turn=5")
    page.wait_for_selector(TURN.format(5))
    assert page.evaluate(fits)
    assert page.evaluate(CONTRAST, ".text, .facts, .badge, h2, h3, summary code, .tabs button, .seq, .top a") >= 4.5, (
        "WCAG 2.2, 1.4.3"
    )
    assert page.evaluate("getComputedStyle(document.querySelector('.entry, .turn')).transitionDuration") == "0s"


def test_lists_go_on_with_older_ones_and_scopes_change(open_page: Callable[..., Any]) -> None:
    page = open_page()
    until(lambda: page.locator(".entry").count() == 50)
    page.click(".more")
    until(lambda: page.locator(".entry").count() == 67)
    assert not page.locator(".more").is_visible()
    page.select_option("#scope", "tenant-7")
    until(lambda: page.locator(".entry").all_text_contents()[0].startswith("only"))
    assert page.locator(".entry").count() == 1


def test_turns_of_another_worker_come_with_a_reload(
    open_page: Callable[..., Any], wrong: list[str], site: Site
) -> None:
    done(lambda: talks.long(site.store, "grown", 3, scope="tenant-7"))
    page = open_page("#scope=tenant-7&id=grown")
    page.wait_for_selector(TURN.format(3))
    done(lambda: site.store.delete("grown", scope="tenant-7"))
    done(lambda: talks.long(site.store, "grown", 5, scope="tenant-7"))
    page.keyboard.press("r")
    page.wait_for_selector(TURN.format(5))
    done(lambda: site.store.delete("grown", scope="tenant-7"))
    page.keyboard.press("r")
    page.locator(".problem", has_text="there is no conversation 'grown'").wait_for()
    assert {"404" in one for one in wrong} == {True}, "the browser itself notes the answer"
    wrong.clear()


def test_the_playground_is_a_tab_and_works_within_its_own_policy(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.click("#to-playground")
    page.click(".go")
    page.locator("#model", has_text="scripted").wait_for()
    page.click("#run")
    page.locator("#note", has_text="Done").wait_for()
    assert page.text_content("tr[data-field=policy_number] .value") == '"3201456789012345"'
    page.go_back()
    page.wait_for_selector(".go")
