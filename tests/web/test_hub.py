import threading

import pytest

from web.hub import Hub, TooManyWatchers


def test_a_watcher_wakes_for_its_run_and_for_unknown_ones() -> None:
    hub = Hub(5)
    one, two, all_of_them = hub.join("a"), hub.join("b"), hub.join(None)
    hub.changed("a")
    assert one.wait(0)
    assert all_of_them.wait(0)
    assert not two.wait(0)
    hub.changed()
    assert one.wait(0)
    assert two.wait(0)


def test_a_wake_before_the_wait_is_not_lost() -> None:
    hub = Hub(1)
    watcher = hub.join("a")
    threading.Thread(target=hub.changed, args=("a",)).start()
    assert watcher.wait(5)
    assert not watcher.wait(0)


def test_no_more_watchers_than_can_be_served() -> None:
    hub = Hub(1)
    first = hub.join("a")
    with pytest.raises(TooManyWatchers):
        hub.join("b")
    hub.leave(first)
    second = hub.join("b")
    assert hub.watched
    hub.leave(second)
    assert not hub.watched


def test_words_are_kept_until_their_turn_is_stored() -> None:
    hub = Hub(1)
    hub.delta("a", 1, "Hel")
    hub.delta("a", 1, "lo")
    words = hub.words("a")
    assert words is not None
    assert (words.turn, words.text) == (1, "Hello")
    hub.delta("a", 2, "New")
    assert (found := hub.words("a")) is not None
    assert found.text == "New"
    hub.changed("a")
    assert hub.words("a") is None


def test_a_closed_hub_lets_everybody_go() -> None:
    hub = Hub(2)
    watcher = hub.join("a")
    hub.close()
    assert watcher.closed
    assert watcher.wait(0)
    with pytest.raises(TooManyWatchers):
        hub.join("b")
