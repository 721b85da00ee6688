"""`import emberflow.compat.pyflink.install`, for notebooks: from here on `import pyflink…` resolves to emberflow."""

from __future__ import annotations

from emberflow.compat.pyflink.finder import install

install()
