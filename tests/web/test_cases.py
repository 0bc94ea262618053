"""The faults that users of such pages reported elsewhere: cases W1 to W5, and H4."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness.state import ApprovalNeeded, Cancelled

HOSTILE = "<script>alert(1)</script>\x1b[31mred\x1b[0m\u202egnp.exe\u200b"


def asked(page: Any, **more: Any) -> tuple[str, ApprovalNeeded]:
    """A run that waits for an approval."""
    run_id = page.start("destructive", "Free some space.", **more)
    state = page.ended(run_id)
    assert isinstance(state.interruption, ApprovalNeeded)
    return run_id, state.interruption


def answer(waiting: ApprovalNeeded, action: str, **more: str) -> dict[str, str]:
    return {"action": action, "call_id": waiting.call_id, "digest": waiting.digest} | more


def test_w1_text_of_others_is_only_text(page: Any) -> None:
    (page.workspace / "errors.log").write_text(f"timeout {HOSTILE}")
    run_id = page.start("plan", f"Which file? {HOSTILE}")
    page.ended(run_id)
    for path in (f"/runs/{run_id}", "/", f"/runs/{run_id}/transcript", f"/compare?run={run_id}"):
        text = page.get(path).text
        assert "<script>alert" not in text, path
        assert "&lt;script&gt;alert(1)" in text, path
        for character in ("\x1b", "\u202e", "\u200b"):
            assert character not in text, path


def test_w1_an_approval_names_every_character_that_cannot_be_seen(page: Any) -> None:
    run_id, waiting = asked(page)
    hidden = "a\u200db\u00adc\u00a0d\u202ee\x00f"
    from web.steps import Ask

    ask = Ask("approval", "c", "delete_file", {"path": hidden}, waiting.digest, f"Deletes {hidden}")
    with page.app.test_request_context():
        from flask import g, get_template_attribute

        g.session = None
        page.app.update_template_context({})
        card = get_template_attribute("approval.html", "card")
        text = str(card("abc", "", ask))
    for code in ("200D", "00AD", "00A0", "202E"):
        assert text.count(f"U+{code}") >= 2
    assert "5 characters that cannot be seen" in text or "4 characters" in text
    assert run_id


def test_w2_a_form_of_another_site_changes_nothing(page: Any) -> None:
    run_id, waiting = asked(page)
    before = page.store.load(run_id)
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        reply = page.client.post(
            f"/runs/{run_id}/decide",
            base_url="http://127.0.0.1:8000",
            data=answer(waiting, "approve") | {"csrf": page.csrf},
            headers=headers,
        )
        assert reply.status_code == 403
    rebound = page.client.get("/", base_url="http://rebound.example:8000")
    assert rebound.status_code == 403
    assert page.store.load(run_id) == before


def test_w3_the_first_of_two_tabs_wins_and_the_other_is_told(page: Any) -> None:
    run_id, waiting = asked(page)
    path, csrf = f"/runs/{run_id}/decide", page.csrf
    replies: list[Any] = []
    start = threading.Barrier(2)

    def tab(form: dict[str, str]) -> None:
        client = page.app.test_client(use_cookies=False)
        cookie = page.client.get_cookie("uitweg_8000", domain="127.0.0.1")
        start.wait()
        replies.append(
            client.post(
                path,
                base_url="http://127.0.0.1:8000",
                data=form | {"csrf": csrf},
                headers={
                    "Cookie": f"uitweg_8000={cookie.value}",
                    "Accept": "application/json",
                },
            )
        )

    forms = [answer(waiting, "approve"), answer(waiting, "reject", reason="I want to keep it.")]
    threads = [threading.Thread(target=tab, args=(form,)) for form in forms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reply.status_code for reply in replies) == [200, 409]
    told = next(reply for reply in replies if reply.status_code == 409).json["error"]
    assert "Nothing was changed" in told or "is already being carried" in told
    state = page.ended(run_id)
    decided = [e for e in page.services.reader.events(run_id) if e.type == "approval_decided"]
    assert len(decided) == 1
    assert (page.workspace / "access.log").exists() == (decided[0].action == "reject")
    assert state.status == "completed"


def test_w3_approve_pressed_twice_deletes_once(page: Any) -> None:
    run_id, waiting = asked(page)
    first = page.send(f"/runs/{run_id}/decide", answer(waiting, "approve"))
    second = page.send(f"/runs/{run_id}/decide", answer(waiting, "approve"))
    assert first.status_code == 200
    assert second.status_code == 409
    assert second.json["error"]
    page.ended(run_id)
    starts = [
        event
        for event in page.services.reader.events(run_id)
        if event.type == "tool_start" and event.tool_name == "delete_file"
    ]
    assert len(starts) == 1


def test_w4_all_of_long_arguments_stands_before_the_button_with_its_length(page: Any) -> None:
    from web.steps import Ask

    tail = "THE-END-OF-IT"
    args = {"path": "x" * 60_000 + tail}
    ask = Ask("approval", "c", "delete_file", args, "d", "Deletes it.")
    with page.app.test_request_context():
        from flask import g, get_template_attribute

        g.session = None
        text = str(get_template_attribute("approval.html", "card")("abc", "", ask))
    shown = len(json.dumps(args, separators=(", ", ": ")))
    assert f"{shown:,} characters" in text
    assert 0 < text.index(tail) < text.index("<button")


@pytest.mark.parametrize("after", [0, 1, 4])
def test_w5_a_connection_that_comes_back_loses_and_doubles_nothing(page: Any, after: int) -> None:
    run_id = page.start("plan")
    page.ended(run_id)
    news = page.get(f"/runs/{run_id}/news?after={after}").json
    whole = page.services.reader.run_page(run_id).steps
    keys = [item["key"] for item in news["items"]]
    assert len(keys) == len(set(keys))
    assert news["seq"] == whole.seq
    # Every item that any later event belongs to is sent, and whole.
    late = {item.key for item in whole.items.values() if item.seq > after}
    assert late <= set(keys) <= set(whole.items)


def test_w5_after_a_restart_of_everything_the_card_is_there_and_works(
    make_page: Callable[[], Any],
) -> None:
    before = make_page()
    run_id, waiting = asked(before)
    cookie = before.client.get_cookie("uitweg_8000", domain="127.0.0.1").value
    before.close()
    after = make_page()
    after.client.set_cookie("uitweg_8000", cookie, domain="127.0.0.1")
    assert "Approve <code>delete_file</code>?" in after.get(f"/runs/{run_id}").text
    assert after.send(f"/runs/{run_id}/decide", answer(waiting, "approve")).status_code == 200
    assert after.ended(run_id).answer == "Deleted access.log to free space."
    assert not (after.workspace / "access.log").exists()


def test_h4_stop_while_an_approval_waits_and_a_late_approve(page: Any) -> None:
    run_id, waiting = asked(page)
    assert page.send(f"/runs/{run_id}/stop").status_code == 200
    state = page.store.load(run_id)
    assert state.status == "interrupted"
    assert isinstance(state.interruption, Cancelled)
    text = page.get(f"/runs/{run_id}").text
    assert "Stopped" in text
    assert "Approve <code>" not in text
    late = page.send(f"/runs/{run_id}/decide", answer(waiting, "approve"))
    assert late.status_code == 409
    assert "does not wait for a decision" in late.json["error"]
    assert (page.workspace / "access.log").exists()
    assert page.store.load(run_id) == state


@pytest.mark.parametrize("workspace", ["x" * 20_000, "é" * 300, "~nobody-of-that-name/x", "\x00"])
def test_a_workspace_that_cannot_be_is_refused_in_words(page: Any, workspace: str) -> None:
    form = {"task": "Look.", "model": "scripted|plan", "workspace": workspace}
    answer = page.post("/runs", form)
    assert answer.status_code == 422
    assert "The workspace " in answer.text
    assert page.store.runs() == []
