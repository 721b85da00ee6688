"""Tables from rows and streams, their columns, their results, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from emberflow.agents import Agent, AgentsExecutionEnvironment, InputEvent, OutputEvent, RunnerContext, action
from emberflow.errors import InvalidArgument, NotSupported, StepFailed
from emberflow.streams import Row, StreamExecutionEnvironment, Types
from emberflow.streams.tables import DataTypes, Schema, StreamTableEnvironment, Table, col

PEOPLE = Schema.new_builder().column("id", DataTypes.INT()).column("name", DataTypes.STRING()).build()


def tables() -> StreamTableEnvironment:
    return StreamTableEnvironment.create(
        StreamExecutionEnvironment.get_execution_environment(engine="local", parallelism=1)
    )


def rows_of(table: Table) -> list[Row]:
    with table.execute().collect() as rows:
        return list(rows)


@dataclass
class Person:
    id: int
    name: str


def test_columns_are_selected_and_renamed() -> None:
    table: Any = tables().from_elements([(1, "ann"), (2, "ben")], ["id", "name"])
    assert rows_of(table.select(col("name"), table.id.alias("number"))) == [
        Row(name="ann", number=1),
        Row(name="ben", number=2),
    ]
    assert rows_of(table.select("name")) == [Row(name="ann"), Row(name="ben")]
    assert rows_of(table.alias("a", "b"))[0] == Row(a=1, b="ann")
    assert str(table) == "the table of elements(`id` BIGINT, `name` STRING)"


def test_types_of_listed_rows_are_those_of_their_values() -> None:
    rows = [(1, None, [1.5], {"a": True}), (2.5, "x", [], {})]
    made = tables().from_elements(rows, ["n", "s", "a", "m"])
    assert str(made.get_schema()) == "(`n` DOUBLE, `s` STRING, `a` ARRAY<DOUBLE>, `m` MAP<STRING, BOOLEAN>)"
    assert list(rows_of(made)[0]) == [1.0, None, [1.5], {"a": True}]
    assert rows_of(tables().from_elements([{"a": 1}, {"a": 2}])) == [Row(a=1), Row(a=2)]
    assert rows_of(tables().from_elements([1, 2], ["n"])) == [Row(n=1), Row(n=2)]


def test_a_listed_row_that_does_not_fit_is_named() -> None:
    with pytest.raises(InvalidArgument, match=r"row 1 does not fit the columns .*\n.*'id': the value 'x'"):
        tables().from_elements(
            [(1, "a"), ("x", "b")],
            DataTypes.ROW(
                [DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("name", DataTypes.STRING())]
            ),
        )
    with pytest.raises(InvalidArgument, match="column 'id' has values of several types: int, str"):
        tables().from_elements([(1, "a"), ("x", "b")], ["id", "name"])
    with pytest.raises(InvalidArgument, match="a table without rows"):
        tables().from_elements([], ["id"])


@pytest.mark.parametrize(
    "record", [(1, "ann"), {"id": 1, "name": "ann"}, Person(1, "ann"), Row(name="ann", id=1)]
)
def test_records_of_any_form_become_rows(record: Any) -> None:
    t_env = tables()
    stream = t_env.get_execution_environment().from_collection([record])
    assert rows_of(t_env.from_data_stream(stream, PEOPLE)) == [Row(id=1, name="ann")]


def test_columns_of_a_stream_are_its_declared_fields() -> None:
    t_env = tables()
    env = t_env.get_execution_environment()
    typed = Types.ROW_NAMED(["id", "name", "more"], [Types.INT(), Types.STRING(), Types.LIST(Types.LONG())])
    stream = env.from_collection([(1, "ann", [3])], typed)
    assert (
        str(t_env.from_data_stream(stream).get_schema()) == "(`id` INT, `name` STRING, `more` ARRAY<BIGINT>)"
    )
    assert rows_of(t_env.from_data_stream(stream, PEOPLE)) == [Row(id=1, name="ann")]
    with pytest.raises(InvalidArgument, match="the columns of the stream are not known"):
        t_env.from_data_stream(env.from_collection([1]))


def test_columns_of_a_stream_are_chosen_by_position_or_by_name() -> None:
    t_env = tables()
    env = t_env.get_execution_environment()
    pairs = env.from_collection([(1, "ann")], Types.TUPLE([Types.INT(), Types.STRING()]))
    assert rows_of(t_env.from_data_stream(pairs, col("id"))) == [Row(id=1)]
    assert rows_of(t_env.from_data_stream(pairs, col("f1"), col("f0").alias("id"))) == [Row(f1="ann", id=1)]
    numbers = t_env.from_data_stream(env.from_collection([7], Types.INT()), col("n"))
    assert rows_of(numbers) == [Row(n=7)]
    with pytest.raises(InvalidArgument, match="2 columns, not 3"):
        t_env.from_data_stream(pairs, col("a"), col("b"), col("c"))
    with pytest.raises(InvalidArgument, match="f7"):
        t_env.from_data_stream(pairs, col("f0"), col("f7"))
    assert t_env.to_append_stream(
        t_env.from_elements([(1, "ann")], ["id", "name"]), Types.ROW([Types.INT(), Types.STRING()])
    ).execute_and_collect(limit=1) == [Row(f0=1, f1="ann")]


def test_a_record_that_does_not_fit_fails_the_job() -> None:
    t_env = tables()
    stream = t_env.get_execution_environment().from_collection([{"id": 1}])
    with pytest.raises(StepFailed, match="missing 'name'"):
        rows_of(t_env.from_data_stream(stream, PEOPLE))


def test_names_of_tables() -> None:
    t_env = tables()
    t_env.create_temporary_view("people", t_env.from_elements([(1, "ann")], ["id", "name"]))
    assert t_env.list_tables() == ["people"]
    assert rows_of(t_env.from_path("people")) == [Row(id=1, name="ann")]
    with pytest.raises(InvalidArgument, match="there is no table 'peple'; did you mean 'people'"):
        t_env.from_path("peple")
    with pytest.raises(InvalidArgument, match="there is a table 'people' already"):
        t_env.create_temporary_view("people", t_env.from_path("people"))
    with pytest.raises(InvalidArgument, match="'people' is a view"):
        t_env.from_path("people").execute_insert("people")
    assert t_env.drop_temporary_table("people")
    assert not t_env.drop_temporary_table("people")


def test_rows_are_printed_as_flink_does(capsys: pytest.CaptureFixture[str]) -> None:
    t_env = tables()
    t_env.from_elements([(1, True, "x" * 40), (2, None, None)], ["id", "ok", "text"]).execute().print()
    line = f"+----+{'-' * 22}+--------+{'-' * 32}+"
    assert capsys.readouterr().out.splitlines() == [
        line,
        f"| op | {'id':>20} |     ok | {'text':>30} |",
        line,
        f"| +I | {1:>20} |   TRUE | {'x' * 27}... |",
        f"| +I | {2:>20} | <NULL> | {'<NULL>':>30} |",
        line,
        "2 rows in set",
    ]


def test_the_result_of_a_table_leaves_other_sinks_alone(capsys: pytest.CaptureFixture[str]) -> None:
    t_env = tables()
    table = t_env.from_elements([(1,)], ["id"])
    t_env.to_data_stream(table).print()
    assert rows_of(table) == [Row(id=1)]
    assert capsys.readouterr().out == ""
    t_env.get_execution_environment().execute()
    assert capsys.readouterr().out == "+I[1]\n"


def table() -> Any:
    return tables().from_elements([(1, "ann")], ["id", "name"])


def env() -> Any:
    return tables()


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "SQL": (lambda: env().sql_query("SELECT 1"), NotSupported, "sql_query.*\\n.*Spark SQL"),
    "statement": (lambda: env().execute_sql("CREATE TABLE t"), NotSupported, "execute_sql"),
    "options": (lambda: env().get_config(), NotSupported, "get_config.*\\n.*env.configure"),
    "settings": (lambda: StreamTableEnvironment.create(None, object()), NotSupported, "settings"),
    "groups": (lambda: table().group_by(col("id")), NotSupported, "group_by"),
    "joins": (lambda: table().join(table()), NotSupported, "join"),
    "filters": (lambda: table().where(col("id")), NotSupported, "where"),
    "arithmetic": (lambda: table().select(table().id + 1), NotSupported, "over 'id'"),
    "comparison": (lambda: col("id") > 1, NotSupported, "over 'id'"),
    "function": (lambda: col("id").avg, NotSupported, "avg of a column"),  # pyright: ignore[reportAttributeAccessIssue]
    "overwriting": (lambda: table().execute_insert("t", True), NotSupported, "overwrite"),
    "another column": (
        lambda: table().select("nam"),
        InvalidArgument,
        "no column 'nam'; did you mean 'name'",
    ),
    "two of one name": (lambda: table().select("id", "id"), InvalidArgument, "'id'"),
    "no column": (lambda: table().select(1), InvalidArgument, "1 is not a column"),
    "unknown method": (lambda: table().selct("id"), AttributeError, "did you mean 'select'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_tables_cannot_do_is_refused(case: str) -> None:
    do, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        do()


class Shout(Agent):
    @action(InputEvent)
    @staticmethod
    def shout(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(Row(id=event.input.id, name=event.input["name"].upper())))


class AsDictionary(Agent):
    @action(InputEvent)
    @staticmethod
    def show(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(event.input.as_dict()))


def test_agents_read_and_write_tables() -> None:
    t_env = tables()
    agents = AgentsExecutionEnvironment.get_execution_environment(t_env.get_execution_environment(), t_env)
    made = agents.from_table(t_env.from_elements([(1, "ann")], ["id", "name"]), "id").apply(Shout())
    assert rows_of(made.to_table(PEOPLE)) == [Row(id=1, name="ANN")]


def test_outputs_of_an_agent_have_the_class_that_is_declared() -> None:
    t_env = tables()
    agents = AgentsExecutionEnvironment.get_execution_environment(t_env=t_env)
    assert agents.t_env is t_env
    made = agents.from_table(t_env.from_elements([(1, "ann")], ["id", "name"]), "id")
    assert made.apply(AsDictionary()).to_datastream(Person).execute_and_collect(limit=1) == [Person(1, "ann")]


def test_tables_of_another_environment_are_rejected() -> None:
    agents = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    with pytest.raises(InvalidArgument, match="another environment"):
        agents.from_table(table(), "id")
    with pytest.raises(InvalidArgument, match="another stream environment"):
        AgentsExecutionEnvironment.get_execution_environment(agents.env, tables())
    with pytest.raises(InvalidArgument, match="no column 'idd'; did you mean 'id'"):
        agents.from_table(table(), "idd")
