"""`ForeignPackage`: another library's modules and names, as tables. The import hook (`finder.py`) reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from emberflow.errors import NotSupported


@dataclass(frozen=True, kw_only=True, eq=False)
class ForeignPackage:
    """A library whose programs can run unchanged."""

    root: str
    """The package that its programs import."""

    product: str
    """Its name, for messages."""

    names: Mapping[str, str]
    """Module -> the names in it, separated by spaces."""

    home: str
    """The module of emberflow that has them, under the same names."""

    homes: Mapping[str, str]
    """Names that are found elsewhere: the module, or `module:Name`. A key may be a name, or `module.Name` where the same
    name stands for different things."""

    values: Mapping[str, object]
    """Names that stand for a plain value."""

    missing_modules: Mapping[str, str]
    """Modules, with all that is below them, that emberflow does not have -> what to use instead."""

    missing_names: Mapping[str, str]
    """The same for names."""

    error: type[NotSupported]
    """What an import of something missing raises; also an `ImportError`."""

    install_module: str
    """The module whose import installs the hook; Spark's workers import it."""

    page: str
    """Its page of the documentation."""

    own_modules: tuple[str, ...] = ()
    """Modules that are the user's own although they are below the root: they are read from files."""

    together_with: tuple[ForeignPackage, ...] = field(default=())
    """Libraries that its programs import as well."""
