"""PyFlink, as the import hook knows it."""

from __future__ import annotations

from emberflow.compat.foreign_package import ForeignPackage
from emberflow.compat.pyflink import missing, names
from emberflow.errors import PyFlinkOnly

PYFLINK = ForeignPackage(
    root="pyflink",
    product="PyFlink",
    names=names.NAMES,
    home=names.STREAMS,
    homes=names.HOMES,
    values=names.VALUES,
    missing_modules=missing.MODULES,
    missing_names=missing.NAMES,
    error=PyFlinkOnly,
    install_module="emberflow.compat.pyflink.install",
    page="docs/from-pyflink.md",
)
