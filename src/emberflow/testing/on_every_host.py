"""`@on_every_host`: one test function, one run per host.

    @on_every_host
    def test_reduce_adds_up(host: Host) -> None: ...

    @on_every_host(hosts=STREAMING_HOSTS)
    def test_late_records_are_dropped(host: Host) -> None: ...

Needs pytest, which is not a dependency of emberflow.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from emberflow.testing.gaps import GAPS, Gap
from emberflow.testing.hosts import HOSTS, Host
from emberflow.testing.spark_session import spark_missing

F = TypeVar("F", bound=Callable[..., Any])


@overload
def on_every_host(test: F) -> F: ...


@overload
def on_every_host(
    *,
    hosts: Sequence[Host] = HOSTS,
    gaps: dict[tuple[str, str], Gap] | None = None,
    nightly: Sequence[Host] = (),
) -> Callable[[F], F]: ...


def on_every_host(
    test: Any = None,
    *,
    hosts: Sequence[Host] = HOSTS,
    gaps: dict[tuple[str, str], Gap] | None = None,
    nightly: Sequence[Host] = (),
) -> Any:
    """Gives the test a `host` argument. Spark hosts carry the marker `spark`; hosts with a declared gap must fail. Hosts
    that add little to what the others show may be left to the `nightly` run."""

    def decorate(function: Any) -> Any:
        pytest = importlib.import_module("pytest")
        known = GAPS if gaps is None else gaps
        params = [
            pytest.param(
                host,
                id=host.name,
                marks=[
                    *_marks(pytest, host, known.get((function.__name__, host.name))),
                    *([pytest.mark.nightly] if host in nightly else []),
                ],
            )
            for host in hosts
        ]
        return pytest.mark.parametrize("host", params)(function)

    return decorate if test is None else decorate(test)


def _marks(pytest: Any, host: Host, gap: Gap | None) -> list[Any]:
    marks: list[Any] = []
    if host.engine == "spark":
        marks.append(pytest.mark.spark)
        missing = spark_missing()
        if missing:
            marks.append(pytest.mark.skip(reason=f"B1 on Spark: {missing}"))
    if gap is not None:
        marks.append(pytest.mark.xfail(strict=True, reason=f"{gap.row}: {gap.reason}", raises=gap.raises))
    return marks
