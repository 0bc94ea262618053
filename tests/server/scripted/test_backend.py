import time

import pytest

from server.errors import BadRequest, ModelNotFound
from server.scripted.scenarios import SCENARIOS


def test_an_unknown_model_is_told_what_there_is(chat):
    with pytest.raises(ModelNotFound, match="plan, runaway") as caught:
        chat("gpt-9")
    assert caught.value.body()["error"]["code"] == "model_not_found"


def test_models_say_that_nothing_thinks_here(backend):
    models = backend.models()
    assert [model["id"] for model in models] == [scenario.name for scenario in SCENARIOS]
    for model in models:
        assert model["uitweg"]["scripted"] is True
        assert model["uitweg"]["profile"] == "none"
        assert model["uitweg"]["description"].endswith(".")
        assert model["uitweg"]["prices"] == {"input_per_million": 2, "output_per_million": 12}


def test_state_and_metrics(backend, chat):
    assert backend.state()["status"] == "ok"
    chat("plan")
    assert "uitweg_scripted_requests_total" in backend.metrics()
    backend.close()
    backend.close()


def test_latency_is_waited_for(chat):
    start = time.monotonic()
    reply = chat("plan?first_token_ms=60&token_ms=20")
    assert time.monotonic() - start >= 0.06 + 0.02 * (reply.pieces - 2)


def test_a_paced_reply_comes_in_pieces_and_another_at_once(chat, called):
    settled = (
        *called(1, "list_files", "[]"),
        *called(2, "read_file", "worker 7 timed out after 30000 ms: ü", path="errors.log"),
    )
    reply = chat("plan?token_ms=1", *settled)
    assert reply.text == "errors.log mentions a timeout: worker 7 timed out after 30000 ms."
    assert reply.pieces > 10
    at_once = chat("plan", *settled)
    assert at_once.text == reply.text
    assert at_once.pieces < 3


def test_limits_of_the_request_are_kept(chat, called):
    settled = (*called(1, "list_files", "[]"), *called(2, "read_file", "", path="errors.log"))
    short = chat("plan", *settled, max_tokens=4)
    assert short.finish.reason == "length"
    assert short.finish.completion_tokens <= 4
    assert chat("plan", *settled, stop=["that"]).text == "No file "
    assert chat("plan", max_tokens=10).finish.reason == "length"


def test_no_call_where_the_request_forbids_it(chat):
    assert chat("plan", tool_choice="none").calls == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
    ],
)
def test_what_no_script_can_is_refused(chat, body, field):
    with pytest.raises(BadRequest) as caught:
        chat("plan", **body)
    assert caught.value.param == field
