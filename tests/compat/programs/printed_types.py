"""How records of declared types are printed: nested types in tuples, rows of every kind, plain values."""

import datetime as dt
from decimal import Decimal

from pyflink.common import Row, RowKind, Types
from pyflink.common.time import Instant
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
NAMED = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
FIELDS = [
    (PAIR, ("And", 5)),
    (NAMED, Row("a", None)),
    (Types.BOOLEAN(), True),
    (Types.DOUBLE(), 0.1),
    (Types.DOUBLE(), 1e10),
    (Types.DOUBLE(), 1.5e-5),
    (Types.DOUBLE(), 0.001),
    (Types.DOUBLE(), float("nan")),
    (Types.FLOAT(), 0.1),
    (Types.BIG_DEC(), Decimal("1.50")),
    (Types.SQL_DATE(), dt.date(2026, 1, 2)),
    (Types.SQL_TIME(), dt.time(3, 4, 5)),
    (Types.SQL_TIMESTAMP(), dt.datetime(2026, 1, 2, 3, 4, 5)),
    (Types.SQL_TIMESTAMP(), dt.datetime(2026, 1, 2, 3, 4, 5, 120000)),
    (Types.INSTANT(), Instant(1, 5000000)),
    (Types.LIST(Types.INT()), [1, 2]),
    (Types.MAP(Types.STRING(), Types.BOOLEAN()), {"a": True}),
    (Types.BASIC_ARRAY(Types.STRING()), ["x", None]),
    (Types.PRIMITIVE_ARRAY(Types.INT()), [1, 2]),
    (Types.OBJECT_ARRAY(PAIR), [("a", 1)]),
]
BIG = Types.TUPLE([kind for kind, _ in FIELDS])
values = tuple(value for _, value in FIELDS)


def rows(_):
    yield Row("And", 5)
    yield Row.of_kind(RowKind.UPDATE_AFTER, "And", None)


numbers = env.from_collection([0])
numbers.map(lambda _: values, output_type=BIG).print("big")
numbers.flat_map(rows, output_type=NAMED).print("rows")
words = env.from_collection([("And", 5), ("And", 6)], NAMED)
words.key_by(lambda r: r.word).sum("n").map(lambda r: (str(r), repr(r), None)).print("sum")
env.from_collection([True, False], Types.BOOLEAN()).print("bool")
env.from_collection([0.1, 1e10], Types.DOUBLE()).print("double")
three = Types.TUPLE([Types.STRING(), Types.INT(), Types.DOUBLE()])
env.from_collection([("a", 1, 2.0)], three).project(2, 0).print("project")
env.execute("printed types")
