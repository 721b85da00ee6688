"""TimerQueue: one timer per (time, key), in order, deletable."""

from __future__ import annotations

from time import process_time

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


def test_deleted_timers_are_also_removed_from_next_time() -> None:
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


def test_saved_timers_are_restored_in_order() -> None:
    queue = TimerQueue()
    for time_ms, key in ((20, "b"), (10, "z"), (20, "a"), (-5, "n"), (10, "gone")):
        queue.register(time_ms, key)
    queue.delete(10, "gone")
    saved = queue.saved()
    assert saved == [(-5, ["n"]), (10, ["z"]), (20, ["b", "a"])]
    assert drain(TimerQueue(saved), 20) == [(-5, "n"), (10, "z"), (20, "b"), (20, "a")]


def test_many_timers_of_one_time_keep_their_order_while_they_change() -> None:
    queue = TimerQueue()
    for key in range(100):
        queue.register(5, f"k{key}")
    assert [queue.pop_due(5) for _ in range(3)] == [(5, "k0"), (5, "k1"), (5, "k2")]
    queue.delete(5, "k3")
    queue.register(5, "k0")
    queue.delete(5, "k50")
    queue.register(5, "k50")
    queue.register(5, "k4")
    order = [*(f"k{key}" for key in range(4, 100) if key != 50), "k0", "k50"]
    assert queue.saved() == [(5, order)]
    assert type(queue.saved()[0][1]) is list
    assert drain(queue, 5) == [(5, key) for key in order]
    assert queue.next_time() is None


def test_timers_of_one_time_take_no_longer_than_those_of_many() -> None:
    def seconds(times: int, count: int = 60_000) -> float:
        queue = TimerQueue()
        for key in range(count):
            queue.register(key * times // count, str(key))
        before = process_time()
        assert len(drain(queue, times)) == count
        return process_time() - before

    # Thirty times as long where each timer is searched for from the beginning.
    assert min(seconds(1) / seconds(60_000) for _ in range(3)) < 8
