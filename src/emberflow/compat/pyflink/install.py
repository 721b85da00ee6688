"""`import emberflow.compat.pyflink.install`, for notebooks: from here on `import pyflink…` resolves to emberflow."""

from __future__ import annotations

from emberflow.compat.finder import install
from emberflow.compat.pyflink.package import PYFLINK

install(PYFLINK)
