"""Every error: its code, its message, and how it gets through a foreign stack trace."""

from __future__ import annotations

import pickle
import re

import pytest

from emberflow import errors
from emberflow.errors import (
    EmberflowError,
    StepFailed,
    describe_cause,
    from_marker,
    shorten,
    to_marker,
)

ALL = sorted(
    (item for item in vars(errors).values() if isinstance(item, type) and issubclass(item, EmberflowError)),
    key=lambda item: item.__name__,
)
CODES = {
    "ActionFailed": "EF2201",
    "ApprovalExpired": "EF2208",
    "ApprovalsFailed": "EF2210",
    "BudgetExceeded": "EF2207",
    "CallLogFailed": "EF2206",
    "CheckpointError": "EF3000",
    "CheckpointUnusable": "EF3001",
    "CorruptData": "EF3003",
    "CheckpointInUse": "EF3004",
    "ModelRefused": "EF2223",
    "OutputMismatch": "EF2222",
    "OwnershipLost": "EF3005",
    "ClassMissing": "EF3006",
    "SinkMismatch": "EF3007",
    "DuplicateUid": "EF1003",
    "EmberflowError": "EF0000",
    "EngineFailed": "EF2108",
    "EnvironmentProblem": "EF4000",
    "FlinkAgentsOnly": "EF1007",
    "InvalidAgent": "EF1005",
    "InvalidArgument": "EF1004",
    "JavaMissing": "EF4001",
    "JobError": "EF2000",
    "KeySelectorFailed": "EF2102",
    "MemoryTooLarge": "EF2203",
    "ModelFailed": "EF2221",
    "NotKeyed": "EF1002",
    "NotSerializable": "EF2103",
    "NotSupported": "EF1001",
    "PackageMissing": "EF4003",
    "ProgramChanged": "EF3002",
    "ProgramError": "EF1000",
    "PyFlinkOnly": "EF1006",
    "PythonTooOld": "EF4002",
    "RecordedError": "EF2209",
    "ReplayMismatch": "EF2205",
    "ResourceFailed": "EF2204",
    "SinkFailed": "EF2106",
    "SourceFailed": "EF2105",
    "StepFailed": "EF2101",
    "ToolFailed": "EF2213",
    "StepLimitReached": "EF2202",
    "UnknownResource": "EF2211",
    "UnknownState": "EF2104",
    "WorkerLost": "EF2107",
}


def test_codes_are_stable_and_unique() -> None:
    assert {item.__name__: item.code for item in ALL} == CODES
    assert len(set(CODES.values())) == len(CODES)


def test_the_tree_in_the_docstring_shows_every_error() -> None:
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or "")) | {"EmberflowError"}
    assert drawn == set(CODES)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_text_pickle_and_marker(kind: type[EmberflowError]) -> None:
    error = kind(
        "step 'ü' failed", cause='ValueError: "x"', way_out="repair it", committed="nothing was committed"
    )
    assert str(error) == (
        f"{kind.__name__} [{kind.code}]: step 'ü' failed\n"
        '  cause: ValueError: "x"\n'
        "  what to do: repair it\n"
        "  nothing was committed"
    )
    for again in (
        pickle.loads(pickle.dumps(error)),
        from_marker(f"org.apache.spark.SparkException: …\n  {to_marker(error)}\n  at java.base/…"),
    ):
        assert type(again) is kind
        assert str(again) == str(error)


def test_errors_are_also_those_that_python_programs_catch() -> None:
    assert issubclass(errors.InvalidArgument, ValueError)
    assert issubclass(errors.InvalidAgent, ValueError)
    assert issubclass(errors.UnknownResource, KeyError)
    assert issubclass(errors.UnknownResource, errors.ResourceFailed)


def test_missing_parts_have_no_line() -> None:
    assert str(StepFailed("short")) == "StepFailed [EF2101]: short"


def test_a_marker_is_one_line_and_bounded() -> None:
    error = StepFailed("ü\n" * 50_000, cause="→" * 50_000)
    marker = to_marker(error)
    assert "\n" not in marker
    assert len(marker) < 40_000
    again = from_marker(marker)
    assert again is not None
    assert again.message == error.message[:800]
    assert again.cause == error.cause[:800]


def test_text_without_or_with_a_broken_marker() -> None:
    assert from_marker("just a stack trace") is None
    assert from_marker("EMBERFLOW-ERROR:AAAA") is None
    assert from_marker("EMBERFLOW-ERROR:" + "!" * 5) is None
    assert from_marker(to_marker(StepFailed("x"))[:-9]) is None


def test_a_marker_of_an_unknown_class_is_still_an_error() -> None:
    class Newer(StepFailed):
        pass

    marker = to_marker(Newer("from a newer version"))
    del Newer
    found = from_marker(marker)
    assert isinstance(found, EmberflowError)
    assert found.message == "from a newer version"


def test_shorten_never_raises_and_never_exceeds() -> None:
    class Evil:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert shorten("abc") == "'abc'"
    assert len(shorten("x" * 1000)) == 120
    assert shorten("x" * 1000).endswith("…")
    assert "repr() raised RuntimeError" in shorten(Evil())


def test_causes_are_one_line() -> None:
    assert describe_cause(ValueError("a\n b")) == "ValueError: a b"
    assert describe_cause(KeyError()) == "KeyError"
    assert describe_cause(StepFailed("x", way_out="y")) == "StepFailed [EF2101]: x"
