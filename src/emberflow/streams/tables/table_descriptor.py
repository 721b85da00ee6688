"""`TableDescriptor`: where the rows of a table are stored, and in which form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn

from emberflow.errors import InvalidArgument, NotSupported, shorten
from emberflow.streams.settings.config_options import ConfigOption
from emberflow.streams.settings.configuration import to_text
from emberflow.streams.tables.data_types import checked_name
from emberflow.streams.tables.refusals import refuse
from emberflow.streams.tables.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescriptor:
    """A connector with its options, and a schema; created by `TableDescriptor.for_connector("filesystem")`."""

    connector: str
    schema: Schema
    options: Mapping[str, str]

    @staticmethod
    def for_connector(connector: str) -> TableDescriptorBuilder:
        """Starts building a descriptor; finish with `build()`. Raises `NotSupported` for other connectors than `filesystem`."""
        if connector != "filesystem":
            raise NotSupported(
                f"the connector {shorten(connector)} of tables is not supported",
                way_out="use 'filesystem'; for other systems make a stream with from_source() or from_dataframe(), and a "
                "table of it with t_env.from_data_stream(stream, schema)",
            )
        return TableDescriptorBuilder(connector)

    def get_schema(self) -> Schema:
        """The columns."""
        return self.schema

    def get_options(self) -> dict[str, str]:
        """The options, with `connector`."""
        return {"connector": self.connector, **self.options}


class TableDescriptorBuilder:
    """Collects the schema and the options."""

    def __init__(self, connector: str) -> None:
        self._connector = connector
        self._schema: Schema | None = None
        self._options: dict[str, str] = {}

    def schema(self, schema: Schema) -> TableDescriptorBuilder:
        """The columns of the table."""
        if not isinstance(schema, Schema):
            raise InvalidArgument(
                f"{shorten(schema)} is not a schema", way_out="Schema.new_builder().column(…).build()"
            )
        self._schema = schema
        return self

    def option(self, key: str | ConfigOption[Any], value: Any) -> TableDescriptorBuilder:
        """An option of the connector or the format."""
        name = key.key if isinstance(key, ConfigOption) else key
        self._options[checked_name(name, "an option")] = to_text(value)
        return self

    def format(self, format: str, format_option: Any = None) -> TableDescriptorBuilder:
        """`json` or `csv`; the same as the option `format`."""
        if not isinstance(format, str) or format_option is not None:
            refuse(
                "a format descriptor", "give the format's name, and its options as option('json.…', value)"
            )
        return self.option("format", format)

    def comment(self, comment: str) -> TableDescriptorBuilder:
        """Kept for PyFlink's programs: nothing shows it."""
        return self

    def partitioned_by(self, *_: str) -> NoReturn:
        """Raises `NotSupported`."""
        refuse("a partitioned table", "write the stream with FileSink and a BucketAssigner")

    def build(self) -> TableDescriptor:
        """The descriptor; raises `InvalidArgument` if it has no schema."""
        if self._schema is None:
            raise InvalidArgument("the table has no schema", way_out="call schema(…) before build()")
        options = MappingProxyType(dict(self._options))
        return TableDescriptor(connector=self._connector, schema=self._schema, options=options)
