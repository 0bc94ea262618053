"""The engine on a real model: what its replies depend on, and what they do not."""

from __future__ import annotations

import time

import pytest

from server.engine.engine import NotReady, QueueFull
from server.engine.picker import GrammarError, Sampling

pytestmark = pytest.mark.engine

STORY = "Once upon a time there was a river that ran through a quiet valley. " * 6
RIVERS = [f"{STORY} Tell me {number} things about rivers and boats." for number in range(5)]


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_greedy_text_is_the_same_cold_cached_and_in_company(ask) -> None:
    """Alone, from the cache, and beside others that share its beginning or do not."""
    cold = [ask.reply(text, 24) for text in RIVERS]
    cached = [ask.reply(text, 24) for text in RIVERS]
    together = [ask.begin(text, 24)[1] for text in [*RIVERS, "Something else entirely."]]
    texts = [sink.wait().whole for sink in together][: len(RIVERS)]
    assert [reply.whole for reply in cached] == [reply.whole for reply in cold]
    assert texts == [reply.whole for reply in cold]
    assert all(r.ending.cached_tokens == r.ending.prompt_tokens - 1 for r in cached)


def test_s5_the_next_turn_computes_only_what_is_new(ask) -> None:
    first = ask.reply(f"{STORY} Go on with this story:", 12)
    before = ask.engine.figures.prefill_tokens
    again = ask.reply(f"{STORY} Go on with this story:{first.whole} And then", 8)
    assert again.ending.cached_tokens >= first.ending.prompt_tokens
    assert ask.engine.figures.prefill_tokens - before <= 16


def test_two_that_begin_alike_do_not_both_compute_it(ask) -> None:
    begin = "The harbour master keeps a list of ships and of their captains. " * 8
    before = ask.engine.figures.prefill_tokens
    sinks = [ask.begin(f"{begin} Ship {name}:", 4)[1] for name in ("one", "two", "three")]
    replies = [sink.wait() for sink in sinks]
    computed = ask.engine.figures.prefill_tokens - before
    assert computed < 1.5 * replies[0].ending.prompt_tokens


def test_limit_and_stop_strings(ask, collected) -> None:
    whole = ask.reply("Count: 1, 2, 3, 4,", 12)
    assert whole.ending.completion_tokens == 12
    assert whole.ending.reason == "length"
    stop = whole.whole[6:9]
    stopped = ask.reply("Count: 1, 2, 3, 4,", 12, stops=[stop])
    assert stopped.ending.reason == "stop"
    assert stopped.whole == whole.whole[: whole.whole.index(stop)]
    enough = ask.reply("Count: 1, 2, 3, 4,", 12, sink=collected(stop_after=3))
    assert enough.ending.reason == "stop"
    assert enough.ending.completion_tokens < 12


def test_a_seed_gives_the_same_text_and_another_gives_another(ask) -> None:
    def say(seed: int) -> str:
        return ask.reply("My favourite animal is", 12, sampling=Sampling(1.2, 0.95, seed)).whole

    assert say(1) == say(1)
    assert len({say(seed) for seed in range(4)}) > 1


def test_a_grammar_holds_for_the_whole_reply(ask) -> None:
    grammar = 'root ::= "[" [0-9]{1,2} ("," [0-9]{1,2}){0,3} "]"\n'
    for sampling in (None, Sampling(1.0, 0.9, 7)):
        reply = ask.reply("Some numbers:", 30, grammar=grammar, sampling=sampling)
        assert reply.ending.reason == "stop"
        numbers = reply.whole.strip("[]").split(",")
        assert reply.whole.startswith("[")
        assert all(number.isdigit() for number in numbers)


def test_a_grammar_that_cannot_be_used_fails_its_own_request_only(ask) -> None:
    _, other = ask.begin("The sea is", 24)
    with pytest.raises(GrammarError):
        ask.reply("x", 4, grammar="root ::= nothing\n")
    assert other.wait().ending.completion_tokens > 0
    assert ask.engine.live == 0


def test_s10_a_cancelled_reply_frees_its_place_while_writing(ask) -> None:
    job, sink = ask.begin("A long list of words:", 1000)
    assert sink.begun_text.wait(60)
    cancelled = ask.engine.figures.cancelled
    ask.engine.cancel(job)
    wait_for(lambda: ask.engine.live == 0)
    assert ask.engine.figures.cancelled == cancelled + 1
    assert not sink.over.is_set()


def test_s10_a_cancelled_prefill_is_broken_off(ask) -> None:
    before = ask.engine.figures.prefill_tokens
    job, _ = ask.begin("word " * 1500, 10)
    wait_for(lambda: ask.engine.live == 1)
    time.sleep(0.05)
    ask.engine.cancel(job)
    wait_for(lambda: ask.engine.live == 0)
    assert ask.engine.figures.prefill_tokens - before < 1500
    assert ask.reply("And now", 4).ending.completion_tokens > 0


def test_text_is_right_after_all_that_cancelling(ask) -> None:
    assert ask.reply(RIVERS[0], 24).whole == ask.reply(RIVERS[0], 24).whole


def test_the_queue_is_bounded(started, asked, tmp_path) -> None:
    engine = started(tmp_path, most_live=1, most_waiting=2, context=512)
    try:
        ask = asked(engine)
        jobs = [ask.begin("A very long story:", 300)[0]]
        wait_for(lambda: engine.live == 1)
        jobs += [ask.begin("Another one:", 300)[0] for _ in range(2)]
        with pytest.raises(QueueFull):
            ask.begin("And one more:", 4)
        assert engine.figures.refused == 1
        for job in jobs:
            engine.cancel(job)
        wait_for(lambda: engine.live == 0 and engine.waiting == 0)
        assert ask.reply("Hello", 2).ending.completion_tokens > 0
    finally:
        engine.close()


def test_replies_that_need_the_whole_cache_take_turns(started, asked, tmp_path) -> None:
    """Nobody runs out of room half way; spent cells are gathered while replies are written."""
    engine = started(tmp_path, context=256)
    try:
        ask = asked(engine)
        alone = [ask.reply(f"Tale number {n}:", 100).whole for n in range(5)]
        sinks = [ask.begin(f"Tale number {n}:", 100)[1] for n in range(5)]
        assert [sink.wait().whole for sink in sinks] == alone
        assert engine.cells_used <= 256
    finally:
        engine.close()


def test_closing_ends_what_runs_and_what_waits(started, asked, tmp_path) -> None:
    engine = started(tmp_path, most_live=1)
    ask = asked(engine)
    jobs = [ask.begin("On and on:", 1000)[0] for _ in range(2)]
    sinks = [job.sink for job in jobs]
    assert sinks[0].begun_text.wait(60)
    engine.close()
    engine.close()
    for sink in sinks:
        with pytest.raises(NotReady, match="ending"):
            sink.wait()
    with pytest.raises(NotReady):
        ask.begin("x")
    with pytest.raises(NotReady):
        engine.submit(jobs[0])


def test_a_file_that_is_no_model_says_so(started, small_model, tmp_path) -> None:
    from server.engine.engine import Engine, EngineSettings

    bad = tmp_path / "bad.gguf"
    bad.write_bytes(small_model.path.read_bytes()[:5000])
    engine = Engine(EngineSettings(bad, "0", 1, tmp_path))
    engine.start()
    with pytest.raises(NotReady, match=r"bad\.gguf could not be loaded"):
        engine.wait_ready(60)
    assert engine.status == "failed"
    engine.close()


def test_guessing_ahead_leaves_the_text_as_it_is(started, asked, tmp_path, monkeypatch) -> None:
    """The same greedy and sampled texts, whether guesses are never or always computed."""
    from server.engine import lookup

    text = "Repeat: red green blue, red green blue, red green blue, red green"
    ways = [{}, {"sampling": Sampling(0.7, 0.9, 3)}, {"grammar": "root ::= [a-z, \\n]{60,90}"}]
    texts = []
    for gain in (0.0, 1e9):
        monkeypatch.setattr(lookup, "_GAIN", gain)
        engine = started(tmp_path)
        try:
            ask = asked(engine)
            replies = [ask.reply(text, 40, **way) for way in ways]
            texts.append([reply.whole for reply in replies])
            assert (engine.figures.drafted_tokens > 0) == (gain == 0)
            assert (engine.figures.accepted_tokens > 0) == (gain == 0)
        finally:
            engine.close()
    assert texts[0] == texts[1]
