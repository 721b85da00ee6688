"""`col`: the columns that `Table.select` takes. Other expressions fail with the way out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from emberflow.errors import InvalidArgument
from emberflow.streams.tables.data_types import checked_name
from emberflow.streams.tables.refusals import no_attribute, refuse, words

_OTHERS = words(
    """
    abs asc at avg between cast ceil char_length collect count date_format desc distinct end exp first_value flatten
    floor get if_else in_ init_cap is_false is_not_null is_null is_true json_value last_value like ln locate log log10
    lower lpad ltrim max min not_between over power proctime regexp_extract repeat replace round rowtime rpad rtrim
    similar sin sqrt start sum sum0 substring to_date to_time to_timestamp trim truncate try_cast upper
    """
)


@dataclass(frozen=True, slots=True)
class Expression:
    """A column of a table, by its name."""

    column: str
    new_name: str | None = None

    def alias(self, name: str, *extra_names: str) -> Expression:
        """The column under another name."""
        if extra_names:
            raise InvalidArgument("a column has one name", way_out="alias(name) with a single name")
        return Expression(self.column, checked_name(name, "a column"))

    @property
    def name(self) -> str:
        """The name of the column in the result."""
        return self.new_name or self.column

    def _refused(self, *_: Any) -> NoReturn:
        refuse(f"an expression other than a column, such as one over {self.column!r},")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refused
    __mod__ = __rmod__ = __neg__ = __and__ = __rand__ = __or__ = __ror__ = __invert__ = _refused
    __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refused

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _OTHERS:
                refuse(f"{name} of a column")
            raise no_attribute(self, name, ("alias", *_OTHERS))


def col(name: str) -> Expression:
    """A column of a table."""
    return Expression(checked_name(name, "a column"))
