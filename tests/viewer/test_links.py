"""Links in a real browser: whom they open the page to, and what other servers get to see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewer.conftest import Site

TURN = ".turn[data-seq='{}']:not(.empty)"


def test_the_printed_link_opens_every_browser_and_leaves_the_address(browser: Any, site: Site) -> None:
    link = site.access.url("127.0.0.1", site.port)
    for _ in range(2):
        context = browser.new_context()
        for _ in range(2):
            page = context.new_page()
            page.goto(link)
            page.wait_for_selector(".entry")
            assert page.url == site.base + "/"
        page.goto(site.base + "/#id=support-4711")
        page.wait_for_selector(TURN.format(1))
        page.reload()
        page.wait_for_selector(TURN.format(1))
        assert context.cookies() == [], "a cookie would go to every port of this host"
        context.close()
    stranger = browser.new_context()
    page = stranger.new_page()
    page.goto(site.base)
    page.locator("#note", has_text="Open the link that pollux-like view printed").wait_for()
    assert page.locator(".entry").count() == 0
    page.evaluate("link => { location.href = link }", link)
    page.wait_for_selector(".entry")
    assert page.url == site.base + "/", "a link that is pasted into the open page is taken too"
    stranger.close()


def test_a_link_from_a_command_line_opens_one_browser_once(
    browser: Any, served: Callable[[Any], int], site: Site
) -> None:
    own = Site(site.store, served)
    link = own.access.url_once("127.0.0.1", own.port)
    context = browser.new_context()
    for _ in range(2):  # a browser that opens it twice is not locked out
        page = context.new_page()
        page.goto(link)
        page.wait_for_selector(".entry")
        assert page.url == own.base + "/"
    context.close()
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.locator("#note", has_text="no token").wait_for()
    context.close()


def test_another_server_of_this_host_gets_nothing_from_the_browser(
    browser: Any, served: Callable[[Any], int], site: Site
) -> None:
    got: list[tuple[str, str]] = []

    async def other(scope: Any, receive: Any, send: Any) -> None:
        got.append((scope.get("path", ""), str(scope.get("headers"))))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"<p>other</p>"})

    port = served(other)
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.access.url("127.0.0.1", site.port))
    page.wait_for_selector(".entry")
    page.click("#to-playground")
    page.wait_for_selector(".go")
    for path in ("/", "/api/store", "/playground/"):
        page.goto(f"http://127.0.0.1:{port}{path}")
    assert page.evaluate("localStorage.length") == 0
    assert page.evaluate("url => fetch(url + '/api/store').then(() => 'read', () => 'refused')", site.base) == "refused"
    context.close()
    said = {path: headers for path, headers in got if path}
    assert {"/", "/api/store", "/playground/"} <= set(said)
    assert [path for path, headers in said.items() if site.access.token in headers] == []
    assert [path for path, headers in said.items() if "cookie" in headers] == ["/playground/"], "which reads no store"
