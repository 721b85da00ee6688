"""TimerQueue: one timer per (time, key), in order, deletable."""

from __future__ import annotations

from emberflow.operators.timers import TimerQueue


def drain(queue: TimerQueue, now_ms: int) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    while (due := queue.pop_due(now_ms)) is not None:
        found.append(due)
    return found


def test_timers_fire_by_time_and_then_by_registration() -> None:
    queue = TimerQueue()
    for time_ms, key in ((20, "b"), (10, "z"), (20, "a"), (10, "y")):
        queue.register(time_ms, key)
    assert len(queue) == 4
    assert drain(queue, 9) == []
    assert drain(queue, 10) == [(10, "z"), (10, "y")]
    assert drain(queue, 100) == [(20, "b"), (20, "a")]
    assert len(queue) == 0


def test_a_timer_is_registered_once() -> None:
    queue = TimerQueue()
    queue.register(5, "a")
    queue.changed = False
    queue.register(5, "a")
    assert not queue.changed
    assert drain(queue, 5) == [(5, "a")]


def test_deleted_timers_are_gone_also_from_next_time() -> None:
    queue = TimerQueue()
    queue.register(5, "a")
    queue.register(7, "a")
    queue.delete(5, "a")
    queue.delete(5, "not there")
    queue.delete(99, "a")
    assert queue.next_time() == 7
    queue.register(5, "b")
    assert queue.next_time() == 5
    assert drain(queue, 7) == [(5, "b"), (7, "a")]
    assert queue.next_time() is None


def test_a_time_whose_keys_were_deleted_can_be_used_again() -> None:
    queue = TimerQueue()
    queue.register(5, "a")
    queue.delete(5, "a")
    queue.register(5, "a")
    assert drain(queue, 5) == [(5, "a")]
    assert drain(queue, 5) == []


def test_a_timer_that_is_set_while_others_fire() -> None:
    queue = TimerQueue()
    queue.register(5, "a")
    assert queue.pop_due(10) == (5, "a")
    queue.register(3, "a")
    queue.register(10, "b")
    queue.register(11, "c")
    assert drain(queue, 10) == [(3, "a"), (10, "b")]
    assert len(queue) == 1


def test_what_is_saved_comes_back_in_order() -> None:
    queue = TimerQueue()
    for time_ms, key in ((20, "b"), (10, "z"), (20, "a"), (-5, "n"), (10, "gone")):
        queue.register(time_ms, key)
    queue.delete(10, "gone")
    saved = queue.saved()
    assert saved == [(-5, ["n"]), (10, ["z"]), (20, ["b", "a"])]
    assert drain(TimerQueue(saved), 20) == [(-5, "n"), (10, "z"), (20, "b"), (20, "a")]
