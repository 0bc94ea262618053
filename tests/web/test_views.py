"""The pages, over a real store and the real scripted server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.journal import now
from harness.state import Decision, Limits

ODD = (
    "", "0", "-1", "1e9", "9" * 30, "\x00", "\u202e", "%ff", "../..", "a" * 3000, "<b>", "ünïcödé",
    "' OR 1=1 --", "None", "[]", "\r\nX: y",
)  # fmt: skip


def test_an_empty_front_page_says_what_to_do(page: Any) -> None:
    text = page.get("/").text
    assert "No run yet" in text
    assert "over its cost by one turn" in text
    for name in ("Real model", "Scripted", "Start", "Examples"):
        assert name in text


def test_a_task_starts_and_its_page_comes_at_once(page: Any) -> None:
    reply = page.post(
        "/runs", {"task": " Which file? ", "model": "scripted|plan", "max_turns": "7"}
    )
    assert reply.status_code == 303
    run_id = reply.headers["Location"].rsplit("/", 1)[1]
    state = page.ended(run_id)
    assert state.task == "Which file?"
    assert state.settings.limits.max_turns == 7
    assert state.status == "completed"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"task": "  "}, "Write what should be done"),
        ({"task": "x" * 20_001}, "too long"),
        ({"model": ""}, "Choose a model"),
        ({"model": "nowhere|plan"}, "Choose a model"),
        ({"model": "real|any"}, "Nobody answers at"),
        ({"max_turns": "0"}, "whole number"),
        ({"max_turns": "many"}, "whole number"),
        ({"max_turns": "٣"}, "whole number"),
        ({"max_cost_usd": "-1"}, "dollars above 0"),
        ({"max_cost_usd": "NaN"}, "dollars above 0"),
        ({"workspace": "/nowhere/at/all"}, "is no folder"),
        ({"workspace": "/etc/passwd"}, "is no folder"),
    ],
)
def test_a_form_that_is_wrong_says_so_and_keeps_what_was_written(
    page: Any, changed: dict[str, str], said: str
) -> None:
    form = {"task": "A task that stays.", "model": "scripted|plan"} | changed
    reply = page.post("/runs", form)
    assert reply.status_code == 422
    assert said in reply.text
    assert form["task"][:50].strip() in reply.text
    assert page.store.runs() == []


def test_filters_by_ending_model_and_text(page: Any) -> None:
    plan = page.start("plan", "Look for the timeout.")
    limit = page.start("runaway", "Go round in circles.", limits=Limits(max_turns=2))
    for run_id in (plan, limit):
        page.ended(run_id)

    def shown(query: str) -> list[bool]:
        text = page.get(f"/?{query}").text
        return [f'id="r-{run_id}"' in text for run_id in (plan, limit)]

    assert shown("") == [True, True]
    assert shown("ending=completed") == [True, False]
    assert shown("ending=max_turns_exceeded") == [False, True]
    assert shown("model=runaway") == [False, True]
    assert shown("q=CIRCLES") == [False, True]
    assert shown("q=worker+7+timed+out") == [True, False]
    assert "No run fits these filters" in page.get("/?q=nothing-like-this").text


def test_older_runs_are_on_the_next_page(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("web.reading.PAGE", 2)
    ids = [page.start("plan", f"Task {number}") for number in range(3)]
    for run_id in ids:
        page.ended(run_id)
    first = page.get("/").text
    assert f"r-{ids[2]}" in first
    assert f"r-{ids[0]}" not in first
    address = first.split('href="/?before=')[1].split('"')[0]
    older = page.get(f"/?before={address}").text
    assert f"r-{ids[0]}" in older
    assert "Older runs" not in older


def test_a_run_can_be_downloaded_as_its_trace(page: Any) -> None:
    run_id = page.start("plan")
    page.ended(run_id)
    reply = page.get(f"/runs/{run_id}/trace.jsonl")
    lines = reply.text.splitlines()
    assert lines == page.store.event_lines(run_id)
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert reply.headers["Content-Disposition"].startswith("attachment")


def test_the_transcript_is_what_the_model_saw(page: Any) -> None:
    run_id = page.start("plan", "Which file mentions a timeout?")
    state = page.ended(run_id)
    text = page.get(f"/runs/{run_id}/transcript").text
    assert text.count('<article class="message">') == len(state.messages)


def test_long_output_is_shown_from_its_beginning_and_whole_on_request(page: Any) -> None:
    long = "timeout\n" + "x" * 5000 + " THE END"
    (page.workspace / "errors.log").write_text(long)
    run_id = page.start("plan")
    page.ended(run_id)
    text = page.get(f"/runs/{run_id}").text
    assert "Show all: 5,016 characters" in text
    address = text.split('class="more"')[1].split('href="')[1].split('"')[0]
    assert "THE END" in page.get(address).text
    assert "THE END" in page.get(f"{address}?piece=1").text


def test_two_runs_side_by_side_and_where_they_part(page: Any) -> None:
    plan, other = page.start("plan"), page.start("destructive")
    for run_id in (plan, other):
        page.ended(run_id)
    text = page.get(f"/compare?run={plan}&run={other}").text
    assert "They part at" in text
    assert "Their tasks differ." not in text
    assert "step 3" in text
    assert text.count('id="parting"') == 1
    same = page.start("plan")
    page.ended(same)
    assert "They did the same, step by step" in page.get(f"/compare?run={plan}&run={same}").text
    table = page.get(f"/compare?run={plan}&run={other}&run={same}").text
    assert "3 runs compared" in table
    assert table.count("cellbar") == 18
    assert "with:" in page.get(f"/compare?run={plan}").text
    assert page.get("/compare?" + "&".join(f"run={n}" for n in range(60))).status_code == 422


def test_a_resume_raises_limits(page: Any) -> None:
    run_id = page.start("runaway", limits=Limits(max_turns=2))
    page.ended(run_id)
    assert 'value="12"' in page.get(f"/runs/{run_id}").text
    refused = page.send(f"/runs/{run_id}/resume", {"max_turns": "x"})
    assert refused.status_code == 422
    assert page.send(f"/runs/{run_id}/resume", {"max_turns": "4"}).status_code == 200
    state = page.ended(run_id)
    assert (state.turns, state.settings.limits.max_turns) == (4, 4)
    assert "Turns at most is now 4" in page.get(f"/runs/{run_id}").text


def test_a_run_that_has_completed_cannot_be_resumed_or_stopped(page: Any) -> None:
    run_id = page.start("plan")
    before = page.ended(run_id)
    for action in ("resume", "stop"):
        reply = page.send(f"/runs/{run_id}/{action}")
        assert reply.status_code == 409, action
        assert reply.json["error"]
    assert page.store.load(run_id) == before
    assert "Resume" not in page.get(f"/runs/{run_id}").text


def test_a_run_that_was_decided_elsewhere_does_not_wait_any_more(page: Any) -> None:
    run_id = page.start("destructive")
    waiting = page.ended(run_id).interruption
    assert "1 run waits for you" in page.get("/").text
    decision = Decision(call_id=waiting.call_id, action="approve", digest=waiting.digest)
    page.store.decide(run_id, decision, waiting.digest, waiting.args, now()).result()
    assert "run waits for you" not in page.get("/").text


def test_a_reason_is_asked_for(page: Any) -> None:
    run_id = page.start("destructive")
    waiting = page.ended(run_id).interruption
    form = {"action": "reject", "call_id": waiting.call_id, "digest": waiting.digest}
    reply = page.send(f"/runs/{run_id}/decide", form | {"reason": "  "})
    assert reply.status_code == 422
    assert "the model reads it" in reply.json["error"]
    assert page.store.load(run_id).interruption == waiting


def test_arguments_that_differ_from_what_was_shown_are_refused(page: Any) -> None:
    run_id = page.start("destructive")
    waiting = page.ended(run_id).interruption
    form = {"action": "approve", "call_id": waiting.call_id, "digest": "0" * 64}
    reply = page.send(f"/runs/{run_id}/decide", form)
    assert reply.status_code == 409
    assert "not what would run" in reply.json["error"]
    assert (page.workspace / "access.log").exists()


@pytest.mark.parametrize(
    "args", ["", "null", "[]", "{", '{"path": NaN}', '{"path": "\\ud800"}', "[" * 100_000, '"x"']
)
def test_edited_arguments_that_are_no_object_decide_nothing(page: Any, args: str) -> None:
    run_id = page.start("destructive")
    waiting = page.ended(run_id).interruption
    form = {"action": "edit", "call_id": waiting.call_id, "digest": waiting.digest, "args": args}
    assert page.send(f"/runs/{run_id}/decide", form).status_code == 422
    assert page.store.load(run_id).interruption == waiting


def test_an_unknown_run_is_not_found_everywhere(page: Any) -> None:
    for rule in page.app.url_map.iter_rules():
        if "run_id" in rule.arguments:
            path = rule.rule.replace("<run_id>", "nobody").replace("<int:seq>", "1")
            method = "POST" if "POST" in (rule.methods or ()) else "GET"
            data = {"action": "approve"} if method == "POST" else None
            reply = page.post(path, data) if method == "POST" else page.get(path)
            assert reply.status_code == 404, path
            assert "nobody" in reply.text


@pytest.mark.parametrize("odd", ODD)
def test_whatever_an_address_holds_the_page_does_not_break(page: Any, odd: str) -> None:
    from urllib.parse import quote

    value = quote(odd)
    run_id = page.start("plan")
    page.ended(run_id)
    for path in (
        f"/?q={value}", f"/?ending={value}", f"/?model={value}", f"/?before={value}",
        f"/?example={value}", f"/?like={value}", f"/compare?run={value}",
        f"/compare?run={value}&run={run_id}",
        f"/runs/{value}", f"/runs/{run_id}/trace?after={value}", f"/runs/{run_id}/events/{value}",
        f"/runs/{run_id}/news?after={value}", f"/news?after={value}&q={value}", f"/static/{value}",
    ):  # fmt: skip
        reply = page.get(path)
        assert reply.status_code < 500, path
        reply.close()


@pytest.mark.parametrize("odd", ODD)
def test_whatever_a_form_holds_the_page_does_not_break(page: Any, odd: str) -> None:
    run_id = page.start("destructive")
    waiting = page.ended(run_id).interruption
    for path, names in (
        ("/runs", ("task", "model", "max_turns", "max_cost_usd", "workspace")),
        (f"/runs/{run_id}/decide", ("action", "call_id", "digest", "reason", "args")),
        (f"/runs/{run_id}/resume", ("max_turns", "max_cost_usd")),
    ):
        good = {"action": "edit", "call_id": waiting.call_id, "digest": waiting.digest}
        for name in names:
            reply = page.send(path, good | {name: odd})
            assert reply.status_code < 500, (path, name)
    assert (page.workspace / "access.log").exists()


def test_a_body_that_is_too_large_is_refused(page: Any) -> None:
    reply = page.post("/runs", {"task": "x" * 3_000_000})
    assert reply.status_code == 413
    assert "too much" in reply.text


def test_half_a_character_never_keeps_a_page_from_being_sent(page: Any) -> None:
    template = page.app.jinja_env.from_string("<p title='{{ text }}'>{{ text }}</p>")
    template.render(text="a\ud800b").encode()


def test_head_on_a_stream_ends_at_once(page: Any) -> None:
    run_id = page.start("plan")
    page.ended(run_id)
    for path in ("/live", f"/runs/{run_id}/live"):
        reply = page.client.head(path, base_url="http://127.0.0.1:8000")
        assert reply.status_code == 200
        assert reply.data == b""


def test_every_file_is_named_with_its_digest(page: Any) -> None:
    text = page.get("/").text
    for name in ("page.css", "page.js", "icon.svg"):
        assert f"/static/{name}?v=" in text
    assert "<style" not in text
    assert text.count("<script") == 1
    assert "http://" not in text.split("<body")[0]


def test_rules_are_shown_with_what_they_match(page: Any, tmp_path: Any) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\naction = "allow"\ntool = "delete_file"\nargs = {path = "*.log"}\n')
    from dataclasses import replace

    from web.rules import rules_shown

    shown = rules_shown(replace(page.services.config, rules=rules))
    assert shown == ["allow delete_file where path = *.log (matches delete_file)"]
    rules.write_text("nonsense")
    assert "cannot be read" in rules_shown(replace(page.services.config, rules=rules))[0]


def test_what_the_person_has_set_holds_for_new_tasks(page: Any) -> None:
    from dataclasses import replace
    from decimal import Decimal
    from pathlib import Path

    from harness.provider import OfferedModel
    from harness.state import Prices
    from web.begin import of

    prices = Prices(input_per_million=Decimal(1), output_per_million=Decimal(2))
    config = replace(page.services.config, prices=prices, profile="small")
    folder, limits = Path("/tmp"), Limits(max_seconds=9)
    real = of(OfferedModel("x"), "http://x/v1", folder, limits, config)
    assert real.prices == prices
    assert "evidence" in real.guidance
    assert real.limits.max_seconds == 9
    scripted = of(OfferedModel("plan", scripted=True), "http://x/v1", folder, limits, config)
    assert scripted.prices == Prices()
    assert scripted.guidance == ()
