"""How often a model may be called: the limits of its descriptor, and the arithmetic of limits shared by processes.

Pure: no clock, no lock, no I/O. `operators/admission/limit_share.py` calls it on behalf of one process; a ledger keeps the
`LimitState` where all processes of the job see it (`engines/job/limit_ledger.py`). Times are seconds of a shared clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from emberflow.operators.admission.model_limits import ModelLimits

BURST_S = 0.25
"""The burst: requests that were not used within this time may be made up for at once."""
LEASE_S = 0.25
"""Requests are granted to a process up to this far ahead, so that not every call needs the ledger."""
DECREASE = 0.5
"""Factor for the calls in flight when a service says that there are too many."""
MARGIN = 0.9
"""Factor for the rate that a service was found to allow."""
RAISE_EVERY_S = 5.0
RATE_STEP = 0.05
SEARCH_EVERY_S, SEARCH_STEP = 1.0, 1.25
"""How an untested rate is raised: the rate at which a burst was rejected says little about a steady rate."""
SURE_S = 5.0
"""A pause this long reveals the rate that a service allows; a short one only that there were too many at once."""
LONGEST_PAUSE_S = 3_600.0
_NO_LIMIT = 10_000.0
_WINDOWS_S = (1.0, 5.0, 20.0, 60.0)


@dataclass(slots=True)
class Member:
    """The grants of one process: `granted` calls may be in flight, `wanted` are in flight or waiting."""

    granted: int = 0
    wanted: int = 0


@dataclass(slots=True, kw_only=True)
class LimitState:
    """What all processes know about one model."""

    requests_at: float = 0.0
    """The time up to which requests have been granted, at the allowed rate."""
    tokens_at: float = 0.0
    paused_until: float = 0.0
    epoch: int = 0
    """Counts how often the service has said "too many". Grants of an earlier epoch are void."""
    limit: float | None = None
    """The calls in flight that the service was found to accept; None: unknown, the descriptor's limit applies."""
    limit_step: float = 0.0
    limit_goal: float = 0.0
    rate: float | None = None
    """The same for requests per second."""
    rate_step: float = 0.0
    rate_goal: float = 0.0
    searching: bool = False
    limit_raised_at: float = 0.0
    rate_raised_at: float = 0.0
    began_at: float | None = None
    """When the first call of the epoch ended."""
    throttled_at: float = 0.0
    asked_s: float = 0.0
    window_s: float = 1.0
    """For how long calls had been made when the last 429 came, at most a second."""
    strikes: int = 0
    went_well: bool = False
    """Whether a call has succeeded since the limits were last raised."""
    ended: list[list[float]] = field(default_factory=list[list[float]])
    """[second, number of calls that succeeded in it] of the last minute."""
    members: dict[str, Member] = field(default_factory=dict[str, Member])

    # rates

    def request_rate(self, limits: ModelLimits) -> float | None:
        """Requests per second that are allowed now."""
        rates = [self.rate, None if limits.requests_per_minute is None else limits.requests_per_minute / 60]
        known = [item for item in rates if item is not None]
        return min(known) if known else None

    def reserve(self, limits: ModelLimits, now: float, tokens: Sequence[float]) -> list[float]:
        """When the next calls, with these numbers of tokens, may start: at least the first of them, however late, so that
        no call starves; the others if they start soon."""
        rate = self.request_rate(limits)
        per_request = None if rate is None else _slowed(1 / rate)
        # A service that rejected calls may not accept bursts at all.
        burst_s = BURST_S if self.rate is None else BURST_S / 5
        per_token = None if limits.tokens_per_minute is None else _slowed(60 / limits.tokens_per_minute)
        starts: list[float] = []
        for cost in tokens:
            start = max(now, self.paused_until)
            if per_request is not None:
                start = max(start, self.requests_at - max(0.0, burst_s - per_request))
            if per_token is not None:
                # A call that is larger than the burst starts too; those behind it wait until its tokens have accrued.
                start = max(start, self.tokens_at - BURST_S)
            if starts and start > now + LEASE_S:
                break
            if per_request is not None:
                self.requests_at = max(self.requests_at, start) + per_request
            if per_token is not None:
                self.tokens_at = max(self.tokens_at, start) + cost * per_token
            starts.append(start)
        return starts

    def settle(self, limits: ModelLimits, tokens: float) -> None:
        """Corrects for a call that consumed this many tokens more (or fewer) than estimated."""
        if limits.tokens_per_minute is not None:
            self.tokens_at += tokens * _slowed(60 / limits.tokens_per_minute)

    # calls in flight

    def concurrency(self, limits: ModelLimits) -> int | None:
        """How many calls may be in flight in all processes together."""
        known = [item for item in (self.limit, limits.max_concurrent) if item is not None]
        return max(1, int(min(known))) if known else None

    def occupy(self, limits: ModelLimits, owner: str, in_flight: int, waiting: int) -> int | None:
        """How many calls this process should have in flight; None: unlimited. What others were granted and have not
        returned is theirs, so together they never exceed the limit. A process with more calls in flight than its share
        keeps them until they end, and starts no others."""
        limit = self.concurrency(limits)
        wanted = in_flight + waiting
        if limit is None:
            self.members[owner] = Member(in_flight, wanted)
            return None
        mine = self.members.setdefault(owner, Member())
        mine.wanted = wanted
        others = sum(item.granted for name, item in self.members.items() if name != owner)
        share = fair_share(limit, {name: item.wanted for name, item in self.members.items()}, owner)
        allowed = max(0, min(share, limit - others))
        mine.granted = max(in_flight, allowed)
        return allowed

    def leave(self, owner: str) -> None:
        self.members.pop(owner, None)

    # adapting to the service's responses

    def succeeded(self, now: float, epoch: int, count: int) -> None:
        """Calls have succeeded. Those started before the last 429 show what was allowed then."""
        if count and epoch == self.epoch:
            self.strikes = 0
            self.went_well = True
            if self.began_at is None:
                self.began_at = now
            self._count(now, count)
        elif count and epoch == self.epoch - 1:
            self._count(self.throttled_at, count)
            self._learn_late(self._learnt())

    def throttle(self, limits: ModelLimits, now: float, epoch: int, retry_after_s: float | None) -> float:
        """The service has said "too many". Pauses all processes; returns for how long."""
        asked_s = retry_after_s
        if asked_s is None:
            asked_s = min(60.0, 0.5 * 2.0 ** min(self.strikes, 10))
        asked_s = min(max(asked_s, 0.05), LONGEST_PAUSE_S)
        self.paused_until = max(self.paused_until, now + asked_s)
        if epoch != self.epoch:
            # Started before the others learned of it: the limits are lowered once, not for every call in flight.
            return asked_s
        self.epoch += 1
        self.strikes += 1
        self.went_well = False
        in_flight = sum(item.granted for item in self.members.values())
        before = min(in_flight, self.concurrency(limits) or in_flight)
        self.limit = max(1.0, before * DECREASE)
        self.limit_step = max(1.0, (before - self.limit) / 10)
        self.limit_goal = float(max(before, 1))
        self.throttled_at, self.asked_s = now, asked_s
        self.window_s = 1.0 if self.began_at is None else min(max(now - self.began_at, 0.05), 1.0)
        learnt, known = self._learnt(), self.request_rate(limits)
        self._lower_rate(learnt, known, sure=asked_s >= SURE_S)
        # What was granted and not started is void.
        self.requests_at = min(self.requests_at, self.paused_until)
        self.limit_raised_at = self.rate_raised_at = self.paused_until
        self.began_at = None
        return asked_s

    def _learn_late(self, learnt: float) -> None:
        """Calls that the service had accepted before the last 429 ended after it, or were reported later by their process."""
        nothing_learnt = self.rate is None and self.rate_goal == 0
        if self.rate is None and not nothing_learnt:
            # The limit has been lifted since.
            return
        if nothing_learnt:
            self.searching = self.asked_s < SURE_S
        self.rate_goal = max(self.rate_goal, 2 * learnt)
        self._set_rate(max(self.rate or 0.0, MARGIN * learnt))

    def _lower_rate(self, learnt: float, known: float | None, *, sure: bool) -> None:
        self.searching = False
        if known is None:
            self.rate_goal = 2 * learnt
            if learnt > 0:
                self.searching = not sure
                self._set_rate(MARGIN * learnt)
            return
        self.rate_goal = 2 * known
        if sure and learnt > 0:
            self._set_rate(MARGIN * min(learnt, known))
        else:
            self._set_rate(min(0.95 * known, max(0.7 * known, MARGIN * learnt)))

    def recover(self, limits: ModelLimits, now: float) -> None:
        """Raises limits that a 429 has lowered: one step per period in which calls succeeded. Time alone proves nothing."""
        if self.limit is not None and now >= self.limit_raised_at + RAISE_EVERY_S:
            self.limit_raised_at = now
            if self.went_well:
                # Above the point of rejection, grow by a fraction of the current limit: never in one large step.
                known = self.limit < self.limit_goal
                self.limit += self.limit_step if known else self.limit * (SEARCH_STEP - 1)
            if self.limit >= (limits.max_concurrent or _NO_LIMIT):
                self.limit = None
        every_s = SEARCH_EVERY_S if self.searching else RAISE_EVERY_S
        if self.rate is not None and now >= self.rate_raised_at + every_s:
            self.rate_raised_at = now
            if self.went_well:
                self.went_well = False
                if self.searching:
                    self._set_rate(self.rate * SEARCH_STEP)
                else:
                    self.rate += self.rate_step
                    self.searching = self.rate >= self.rate_goal
            own = limits.requests_per_minute
            if self.rate >= (_NO_LIMIT if own is None else own / 60):
                self.rate, self.searching = None, False

    def _set_rate(self, rate: float) -> None:
        self.rate = max(rate, 1 / 60)
        self.rate_step = self.rate * RATE_STEP

    def _count(self, at: float, count: int) -> None:
        second = float(int(at))
        for item in reversed(self.ended):
            if item[0] == second:
                item[1] += count
                break
        else:
            self.ended.append([second, count])
        self.ended = [item for item in self.ended if item[0] > at - _WINDOWS_S[-1] - 1]

    def _learnt(self) -> float:
        """Requests per second that the service had accepted at the last 429; the pause that it asks for is added to the
        time they took. The best of several windows, because there may have been few requests before."""
        at, found = self.throttled_at, 0.0
        for window in (self.window_s, *_WINDOWS_S):
            first, count = at - max(window, 1.0), 0.0
            for second, ended in self.ended:
                last = min(second + 1, at)
                if first < last and second <= at:
                    # Count a second that is partly inside the window in part.
                    count += ended * min(1.0, (last - first) / max(last - second, 0.001))
            found = max(found, count / (window + self.asked_s))
        return found

    # as data

    def to_json(self) -> dict[str, Any]:
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        data["members"] = {name: [item.granted, item.wanted] for name, item in self.members.items()}
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        given = dict(data)
        given["members"] = {name: Member(*item) for name, item in data["members"].items()}
        return cls(**given)


def _slowed(interval_s: float) -> float:
    """Including the burst, no minute has more requests than the limit."""
    return interval_s * (1 + BURST_S / 60)


def fair_share(limit: int, wanted: dict[str, int], owner: str) -> int:
    """One process's share of a limit: those that want little get it, the rest is shared evenly."""
    left, shares = limit, 0
    names = sorted(wanted, key=lambda name: (wanted[name], name))
    for number, name in enumerate(names):
        # Those that want most come last, and get the remainder.
        shares = min(wanted[name], left // (len(names) - number))
        if name == owner:
            return shares
        left -= shares
    return shares
