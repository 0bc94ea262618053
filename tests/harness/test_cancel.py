import asyncio
import gc
import threading
import time

import pytest

from harness.cancel import CancelledByToken, CancelToken


def test_it_is_set_once_and_keeps_the_first_reason():
    token = CancelToken()
    assert token.cancel("first")
    assert not token.cancel("second")
    assert token.reason == "first"
    assert token.cancelled_at <= time.monotonic()


def test_children_are_cancelled_with_their_parent_and_not_the_other_way():
    parent = CancelToken()
    child = parent.child()
    grandchild = child.child()
    other = parent.child()
    other.cancel("alone")
    assert not parent.cancelled
    parent.cancel("all")
    assert (child.reason, grandchild.reason, other.reason) == ("all", "all", "alone")
    assert child.cancelled_at == parent.cancelled_at


def test_a_child_of_a_cancelled_token_is_cancelled():
    parent = CancelToken()
    parent.cancel("early")
    assert parent.child().reason == "early"


def test_a_token_in_the_middle_that_nobody_keeps_still_passes_it_on():
    top = CancelToken()
    lowest = top.child().child()
    gc.collect()
    top.cancel("through")
    assert lowest.reason == "through"


def test_finished_children_are_not_kept():
    parent = CancelToken()
    for _ in range(100):
        parent.child()
    gc.collect()
    assert len(parent._children) == 0


def test_callbacks_run_once_and_can_be_taken_back():
    token = CancelToken()
    calls = []
    token.on_cancel(lambda: calls.append("a"))
    token.on_cancel(lambda: calls.append("b"))()
    token.cancel("x")
    token.cancel("y")
    token.on_cancel(lambda: calls.append("late"))
    assert calls == ["a", "late"]


async def test_wait_wakes_from_another_thread():
    token = CancelToken()
    threading.Timer(0.01, token.cancel, ["elsewhere"]).start()
    async with asyncio.timeout(5):
        assert await token.wait() == "elsewhere"


def test_raise_if_cancelled_says_why():
    token = CancelToken()
    token.raise_if_cancelled()
    token.cancel("enough")
    with pytest.raises(CancelledByToken, match="enough"):
        token.raise_if_cancelled()
