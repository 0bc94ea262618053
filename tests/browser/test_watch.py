"""Start, watch, stop, resume, reload: in a real browser."""

from __future__ import annotations

from typing import Any


def test_a_scripted_run_is_watched_to_its_end(page: Any, begin: Any, ending: Any) -> None:
    begin(page, "Find a timeout")
    ending(page, "Completed")
    assert (
        page.locator("#part-state .answer")
        .inner_text()
        .endswith("errors.log mentions a timeout: worker 7 timed out after 30000 ms.")
    )
    assert page.locator(".trace .turn").count() == 3
    assert page.locator(".trace .call").count() == 2
    assert page.title().startswith("Completed: ")


def test_each_item_is_there_once_whether_watched_or_looked_back_at(
    page: Any, begin: Any, ending: Any
) -> None:
    begin(page, "Hit a limit")
    ending(page, "Turn limit")
    page.wait_for_timeout(300)
    watched = page.locator(".trace > li").evaluate_all("all => all.map(e => e.id + e.innerText)")
    page.reload()
    again = page.locator(".trace > li").evaluate_all("all => all.map(e => e.id + e.innerText)")
    assert watched == again
    assert len(watched) == len(set(watched)) == 1 + 8 + 8 + 1


def test_stop_during_a_scan(page: Any, begin: Any, ending: Any) -> None:
    begin(page, "Stop a long scan")
    page.locator("progress").wait_for()
    page.get_by_role("button", name="Stop").click()
    ending(page, "Stopped")
    said = page.locator("#stopped").inner_text()
    assert said.startswith("scan_archive stopped ")
    assert said.endswith("after Stop was pressed. Nothing was abandoned.")
    assert page.locator(".call .chip").inner_text() == "stopped"


def test_w5_a_reload_in_mid_run_comes_back_to_the_same_place(
    page: Any, begin: Any, ending: Any
) -> None:
    begin(page, "Stop a long scan")
    page.locator("progress").wait_for()
    page.reload()
    assert page.locator("#part-state .chip").inner_text() == "Running"
    assert page.locator("[data-since]").is_visible()
    ending(page, "Completed")
    ids = page.locator(".trace > li").evaluate_all("all => all.map(e => e.id)")
    assert len(ids) == len(set(ids)) == 5


def test_a_run_goes_on_when_its_tab_is_closed(
    stack: Any, open_context: Any, begin: Any, ending: Any
) -> None:
    context = open_context(stack)
    first = context.new_page()
    first.goto(stack.address)
    begin(first, "Stop a long scan")
    address = first.url
    first.close()
    second = context.new_page()
    second.goto(address)
    ending(second, "Completed")


def test_w5_a_lost_connection_comes_back_by_itself(
    stack: Any, open_context: Any, begin: Any, ending: Any, faults: Any
) -> None:
    context = open_context(stack)
    page = context.new_page()
    page.goto(stack.address)
    begin(page, "Stop a long scan")
    page.locator("progress").wait_for()
    context.set_offline(True)
    page.evaluate("dispatchEvent(new Event('offline'))")
    page.wait_for_timeout(700)
    context.set_offline(False)
    ending(page, "Completed")
    ids = page.locator(".trace > li").evaluate_all("all => all.map(e => e.id)")
    assert len(ids) == len(set(ids)) == 5
    faults.clear()  # the browser says that it was offline


def test_resume_with_a_raised_limit(page: Any, begin: Any, ending: Any) -> None:
    begin(page, "Hit a limit", max_turns="3")
    ending(page, "Turn limit")
    page.locator("#part-actions [name=max_turns]").fill("5")
    page.get_by_role("button", name="Resume").click()
    page.locator(".trace .end").nth(1).wait_for()
    assert "of 5" in page.locator("#part-figures").inner_text()
    assert page.locator(".trace .turn").count() == 5


def test_a_subagents_run_is_linked_both_ways(page: Any, begin: Any, ending: Any) -> None:
    begin(page, "Ask a subagent")
    ending(page, "Completed")
    parent = page.url
    page.locator("#part-children a").click()
    ending(page, "Completed")
    page.get_by_role("link", name="The run that asked for this one").click()
    assert page.url == parent


def test_nothing_jumps_while_steps_stream_in(page: Any, begin: Any, ending: Any) -> None:
    page.add_init_script(
        """window.shifted = 0;
        new PerformanceObserver((list) => { for (const e of list.getEntries())
          if (!e.hadRecentInput) window.shifted += e.value;
        }).observe({ type: "layout-shift", buffered: true });"""
    )
    begin(page, "Stop a long scan")
    page.locator("progress").wait_for()
    page.wait_for_timeout(1200)
    assert page.evaluate("window.shifted") < 0.1


def test_everything_works_without_script(stack: Any, open_context: Any) -> None:
    page = open_context(stack, java_script_enabled=False).new_page()
    page.goto(stack.address)
    page.get_by_role("link", name="Approve a deletion").click()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/runs/*")
    while not page.locator(".ask").count():
        page.reload()
    page.get_by_role("button", name="Approve", exact=True).click()
    while "Completed" not in page.locator("#part-state").inner_text():
        page.reload()
    assert "Deleted access.log" in page.locator("#part-state").inner_text()
