"""Approve, edit, reject, in one tab and in two, and after everything was killed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any


def demo(stack: Any) -> Path:
    found: Path = stack.data / "demo"
    return found


def test_approve(page: Any, stack: Any, begin: Any, ending: Any) -> None:
    begin(page, "Approve a deletion")
    card = page.locator(".ask")
    card.wait_for()
    assert page.title().startswith("(!) Approve delete_file?")
    text = card.inner_text()
    assert "Deletes access.log (" in text
    assert "GET /index.html" in text
    assert '"path": "access.log"' in text
    assert "22 characters" in text
    assert (demo(stack) / "access.log").exists()
    page.get_by_role("button", name="Approve", exact=True).click()
    ending(page, "Completed")
    assert not (demo(stack) / "access.log").exists()
    assert page.locator(".ask").count() == 0


def test_edit_and_approve(page: Any, stack: Any, begin: Any, ending: Any) -> None:
    begin(page, "Approve a deletion")
    page.get_by_text("Edit and approve…").click()
    page.get_by_label("Arguments that will run").fill('{"path": "notes.txt"}')
    page.get_by_role("button", name="Approve these").click()
    ending(page, "Completed")
    assert (demo(stack) / "access.log").exists()
    assert not (demo(stack) / "notes.txt").exists()
    assert "notes.txt" in page.locator(".trace .call").nth(1).inner_text()


def test_an_edit_that_is_wrong_says_so_and_decides_nothing(
    page: Any, stack: Any, begin: Any, faults: Any
) -> None:
    begin(page, "Approve a deletion")
    page.get_by_text("Edit and approve…").click()
    for wrong, said in (("{", "not JSON"), ("[1]", "JSON object"), ('{"file": 1}', "path")):
        page.get_by_label("Arguments that will run").fill(wrong)
        page.get_by_role("button", name="Approve these").click()
        page.locator(".ask .said", has_text=said).wait_for()
    assert page.locator(".ask").is_visible()
    assert len(list(demo(stack).glob("*.*"))) >= 3
    page.get_by_role("button", name="Stop").click()
    page.locator("#part-state .chip", has_text="Stopped").wait_for()
    faults.clear()  # the browser reports each 422


def test_reject_needs_a_reason_and_offers_ready_ones(
    page: Any, stack: Any, begin: Any, ending: Any
) -> None:
    begin(page, "Approve a deletion")
    page.get_by_text("Reject…").click()
    page.locator(".ask input[name=reason]:focus").wait_for()
    page.get_by_role("button", name="Reject with this reason").click()
    assert page.locator(".ask input:invalid").count() == 1
    page.get_by_role("button", name="I want to keep it.").click()
    page.get_by_role("button", name="Reject with this reason").click()
    ending(page, "Completed")
    assert "I did not delete anything" in page.locator("#part-state").inner_text()
    assert "I want to keep it." in page.locator(".trace .decision").inner_text()
    assert (demo(stack) / "access.log").exists()


def test_the_card_is_on_the_list_and_in_its_title(
    page: Any, stack: Any, begin: Any, open_context: Any
) -> None:
    begin(page, "Approve a deletion")
    page.locator(".ask").wait_for()
    page.goto(stack.address)
    assert page.title().startswith("(1) ")
    assert "1 run waits for you" in page.locator("#waiting").inner_text()
    page.locator(".ask").get_by_role("button", name="Approve", exact=True).click()
    page.locator(".runrow:first-child .chip", has_text="Completed").wait_for()
    page.wait_for_function("!document.title.startsWith('(')")
    assert page.locator(".ask").count() == 0


def test_a_card_appears_on_a_list_that_is_open(stack: Any, open_context: Any, begin: Any) -> None:
    context = open_context(stack)
    watching, working = context.new_page(), context.new_page()
    watching.goto(stack.address)
    watching.locator("h2", has_text="Runs").click()
    working.goto(stack.address)
    begin(working, "Approve a deletion")
    watching.locator(".ask").wait_for()
    watching.wait_for_function("document.title.startsWith('(1)')")
    watching.locator(".ask").get_by_role("button", name="Approve", exact=True).click()
    watching.locator(".ask").wait_for(state="detached")


def test_w3_two_tabs_decide_at_once(
    stack: Any, open_context: Any, begin: Any, ending: Any, faults: Any
) -> None:
    context = open_context(stack)
    one, other = context.new_page(), context.new_page()
    one.goto(stack.address)
    begin(one, "Approve a deletion")
    one.locator(".ask").wait_for()
    other.goto(one.url)
    # The card of one tab goes as soon as the other has decided: both hold their form before.
    hold = """(action) => {
      const form = document.querySelector('.ask form');
      window.data = new URLSearchParams(new FormData(form));
      window.data.set('action', action);
      window.data.set('reason', 'I want to keep it.');
      window.to = form.getAttribute('action');
    }"""
    press = """() => {
      window.pressed = fetch(window.to, { method: 'POST', body: window.data,
        headers: { Accept: 'application/json' } }).then(async (a) => [a.status, await a.json()]);
    }"""
    one.evaluate(hold, "approve")
    other.evaluate(hold, "reject")
    one.evaluate(press)
    other.evaluate(press)
    replies = [tab.evaluate("window.pressed") for tab in (one, other)]
    assert sorted(status for status, _ in replies) == [200, 409]
    lost = next(reply for status, reply in replies if status == 409)
    assert lost["error"]
    for tab in (one, other):
        ending(tab, "Completed")
        assert tab.locator(".trace .decision").count() == 1
        assert tab.locator(".ask").count() == 0
    won = "approve" if replies[0][0] == 200 else "reject"
    assert (demo(stack) / "access.log").exists() == (won == "reject")
    faults.clear()  # the browser reports the 409


def test_w5_everything_is_killed_while_an_approval_waits(
    own_page: Any, own_stack: Any, begin: Any, ending: Any, faults: Any
) -> None:
    begin(own_page, "Approve a deletion")
    own_page.locator(".ask").wait_for()
    own_stack.end(signal.SIGKILL)
    own_page.locator("#notice", has_text="The connection is lost").wait_for()
    assert own_page.locator(".ask").is_visible()
    own_stack.start()
    own_page.locator("#notice").wait_for(state="hidden")
    own_page.get_by_role("button", name="Approve", exact=True).click()
    ending(own_page, "Completed")
    assert not (demo(own_stack) / "access.log").exists()
    faults.clear()  # the browser reports every refused connection


def test_a_run_whose_process_was_killed_can_be_continued(
    own_page: Any, own_stack: Any, begin: Any, ending: Any, faults: Any
) -> None:
    begin(own_page, "Stop a long scan")
    own_page.locator("progress").wait_for()
    own_stack.end(signal.SIGKILL)
    own_stack.start()
    own_page.reload()
    ending(own_page, "Left behind")
    own_page.get_by_role("button", name="Continue").click()
    ending(own_page, "Completed")
    faults.clear()


def test_a_run_of_a_page_that_was_stopped_can_be_resumed(
    own_page: Any, own_stack: Any, begin: Any, ending: Any, faults: Any
) -> None:
    begin(own_page, "Stop a long scan")
    own_page.locator("progress").wait_for()
    own_stack.end()
    own_stack.start()
    own_page.reload()
    ending(own_page, "Stopped")
    assert "Uitweg was stopped" in own_page.locator("#part-state").inner_text()
    own_page.get_by_role("button", name="Resume").click()
    ending(own_page, "Completed")
    faults.clear()


def test_h4_stop_while_an_approval_waits(page: Any, stack: Any, begin: Any, ending: Any) -> None:
    begin(page, "Approve a deletion")
    page.locator(".ask").wait_for()
    page.get_by_role("button", name="Stop").click()
    ending(page, "Stopped")
    page.reload()
    ending(page, "Stopped")
    assert page.locator(".ask").count() == 0
    assert (demo(stack) / "access.log").exists()


def test_a_decision_by_keyboard_alone(page: Any, stack: Any, begin: Any, ending: Any) -> None:
    begin(page, "Approve a deletion")
    page.locator(".ask").wait_for()
    for _ in range(25):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.value") == "approve":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    page.keyboard.press("Enter")
    ending(page, "Completed")
