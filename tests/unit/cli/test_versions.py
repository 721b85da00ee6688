from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from emberflow.cli.versions import is_within

numbers = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
clauses = st.one_of(numbers.map(">={}".format), numbers.map("<{}".format), numbers.map("=={}.*".format))


@given(version=numbers, wanted=st.lists(clauses, min_size=1, max_size=3).map(",".join))
def test_agrees_with_packaging(version: str, wanted: str) -> None:
    assert is_within(version, wanted) == SpecifierSet(wanted).contains(version)


@pytest.mark.parametrize("version", ["4.3.0.dev1", "4.3.1rc2", "4.3.0+local"])
def test_suffixes_count_as_their_release(version: str) -> None:
    assert is_within(version, "==4.3.*")


def test_an_unknown_clause_is_rejected() -> None:
    with pytest.raises(ValueError, match="only =="):
        is_within("1.0", "~=1.0")
