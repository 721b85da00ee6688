"""Keys of numpy that equal plain ones are the same keys, also after a restart; NaN is refused."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy
import pytest

from emberflow.errors import StepFailed
from emberflow.events.key_groups import stable_hash
from emberflow.testing import LOCAL, LOCAL_2, LOCAL_SQLITE, Crash, Host, TestSource, on_every_host

NAN = float("nan")


@pytest.mark.parametrize(
    ("key", "plain"),
    [
        (numpy.str_("x"), "x"),
        (numpy.bytes_(b"x"), b"x"),
        (numpy.bool_(True), True),
        (numpy.int64(3), 3),
        (numpy.float32(0.5), 0.5),
        ((numpy.str_("x"), 1), ("x", numpy.int8(1))),
    ],
)
def test_equal_keys_have_one_hash(key: Any, plain: Any) -> None:
    assert key == plain
    assert stable_hash(key) == stable_hash(plain)


@on_every_host(hosts=[LOCAL, LOCAL_2, LOCAL_SQLITE])
def test_a_numpy_string_is_the_same_key_after_a_restart(host: Host, tmp_path: Path) -> None:
    names = ["x", numpy.str_("x"), Crash(), "x", numpy.str_("x"), "x"]
    run = host.run_to_files(
        lambda env: (
            env.add_source(TestSource(names))
            .map(lambda name: (name, 1))
            .key_by(lambda pair: pair[0])
            .sum(1)
            .map(lambda pair: pair[1])
        ),
        tmp_path,
    )
    assert Counter(run.values) == Counter([1, 2, 3, 4, 5])


@pytest.mark.parametrize("key", [NAN, numpy.float64("nan"), Decimal("nan"), ("a", (1, NAN))], ids=repr)
@on_every_host(hosts=[LOCAL, LOCAL_2, LOCAL_SQLITE])
def test_nan_is_refused(host: Host, key: Any) -> None:
    with pytest.raises(
        StepFailed, match=r"step 'total'.* could not process the value 2\n.*does not equal itself"
    ):
        host.run(
            lambda env: (
                env.from_collection([1, 2, 3])
                .key_by(lambda value: key if value == 2 else value)
                .reduce(lambda a, b: a + b)
                .name("total")
            )
        )
