"""Rows by position and by name, nested types, and fields by name in key_by and sum."""

from pyflink.common import Row, Types
from pyflink.common.types import RowKind
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

SALE = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.INT()])
sales = env.from_collection([Row("ann", 3), Row("bob", 5), Row("ann", 4)], type_info=SALE)
sales.print("sales")
sales.map(lambda sale: f"{sale.user} {sale['amount']} {sale[1] + 1}", Types.STRING()).print("fields")
sales.key_by(lambda sale: sale.user, Types.STRING()).sum("amount").print("sum")

pairs = env.from_collection([("x", 1)], type_info=Types.ROW([Types.STRING(), Types.INT()]))
pairs.map(lambda row: f"{row[0]} {row.f1} {isinstance(row, Row)}", Types.STRING()).print("positional")

nested = env.from_collection(
    [(1, [1, 2], {"a": 1.5}, True)],
    type_info=Types.TUPLE(
        [Types.INT(), Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.DOUBLE()), Types.BOOLEAN()]
    ),
)
nested.print("nested")

row = Row(name="eve", age=7)
changed = Row("a", 1)
changed.set_field_names(["letter", "number"])
changed.set_row_kind(RowKind.UPDATE_AFTER)
print("local>", row, row.as_dict(), row.name, row["age"], len(row), changed.letter, changed.get_row_kind())
env.execute("rows")
