"""Every Python block of the documentation, and every example in a docstring, passes the type checker like user code."""

from __future__ import annotations

from pathlib import Path

from tests.docs.docstrings import examples
from tests.support.markdown import Chain, chains, documents, name_of
from tests.support.pyright import check


def as_program(chain: Chain) -> str:
    """The blocks of one namespace, on the lines of the document."""
    lines: list[str] = []
    for fence in chain:
        lines += [""] * (fence.line - 1 - len(lines))
        lines += fence.text.splitlines()
    return "\n".join(lines) + "\n"


def test_documentation_is_well_typed(tmp_path: Path) -> None:
    shown: dict[Path, str] = {}
    for document in documents():
        for number, chain in enumerate(chains(document)):
            if any("from pyflink" in fence.text for fence in chain):
                continue  # A type checker knows nothing of names that an import hook resolves.
            path = tmp_path / f"{document.stem.replace('-', '_').lower()}_{number}.py"
            path.write_text(as_program(chain), encoding="utf-8")
            shown[path] = name_of(document)
    for number, example in enumerate(examples()):
        path = tmp_path / f"example_{number}.py"
        path.write_text(example.text, encoding="utf-8")
        shown[path] = example.name
    assert len(shown) > 30
    found = [
        f"{shown[path]}:{finding.line} {finding.rule}: {finding.message}"
        for path, findings in check([tmp_path]).items()
        for finding in findings
    ]
    assert not found, "\n".join(found)
