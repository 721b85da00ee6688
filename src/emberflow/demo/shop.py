"""The demo's program: a shop's orders, live.

orders ─ by customer ─► totals and alerts ─► profile (an asynchronous call) ─ by product ─► revenue per 5 seconds
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple

from emberflow.streams import (
    AggregateFunction,
    AsyncDataStream,
    DataGeneratorSource,
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    ProcessWindowFunction,
    RateLimiterStrategy,
    RuntimeContext,
    Sink,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    ValueState,
    ValueStateDescriptor,
    WatermarkStrategy,
)

CUSTOMERS = 300
PRODUCTS = {"coffee": 9.5, "tea": 6.0, "grinder": 79.0, "kettle": 45.0, "mug": 12.0, "filter": 4.5}
WINDOW = timedelta(seconds=5)
LATENESS = timedelta(milliseconds=500)
CALL_MS = (20, 80)
COUNTRIES = ("AT", "BR", "DE", "FR", "IN", "JP", "KE", "US")

ALERTS = OutputTag("alerts")


class Order(NamedTuple):
    number: int
    customer: str
    product: str
    amount: float
    placed_ms: int
    """Event time."""
    made_ms: int
    """Wall clock when the source made it; only for measuring."""


class Sale(NamedTuple):
    """An order with what state and the profile service know about its customer."""

    order: Order
    customer_total: float
    country: str


class Alert(NamedTuple):
    number: int
    customer: str
    product: str
    amount: float
    usual: float
    placed_ms: int


class Revenue(NamedTuple):
    product: str
    start_ms: int
    amount: float
    orders: int


class OrderGenerator:
    """Order number i, the same each time it is asked for (except for the wall clock it carries)."""

    def __init__(self, start_ms: int, orders_per_s: float) -> None:
        self._start_ms = start_ms
        self._orders_per_s = orders_per_s

    def __call__(self, number: int) -> Order:
        dice = random.Random(number)
        product = dice.choices(tuple(PRODUCTS), weights=(8, 5, 1, 2, 4, 6))[0]
        # One order in a hundred is a bulk order: that is what the alerts are about.
        pieces = dice.randint(30, 60) if dice.random() < 0.01 else dice.randint(1, 3)
        # Orders arrive a little out of order.
        placed_ms = self._start_ms + int(number * 1000 / self._orders_per_s) - dice.randint(0, 400)
        customer = f"customer-{dice.randrange(CUSTOMERS):03}"
        return Order(
            number, customer, product, PRODUCTS[product] * pieces, placed_ms, int(time.time() * 1000)
        )


class CustomerTotals(KeyedProcessFunction):
    """What each customer has spent, and an alert for an order far above the customer's usual one."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._spent: ValueState[tuple[int, float]] = runtime_context.get_state(ValueStateDescriptor("spent"))

    def process_element(self, value: Order, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        orders, total = self._spent.value() or (0, 0.0)
        usual = total / orders if orders else 0.0
        if orders >= 3 and value.amount > 250 and value.amount > 5 * usual:
            yield (
                ALERTS,
                Alert(value.number, value.customer, value.product, value.amount, usual, value.placed_ms),
            )
        self._spent.update((orders + 1, total + value.amount))
        yield value, total + value.amount


async def look_up_profile(totalled: tuple[Order, float]) -> Sale:
    """Stands for a call to another service."""
    order, total = totalled
    dice = random.Random(order.number)
    await asyncio.sleep(dice.uniform(*CALL_MS) / 1000)
    return Sale(order, total, COUNTRIES[int(order.customer[-3:]) % len(COUNTRIES)])


class RevenueSum(AggregateFunction):
    def create_accumulator(self) -> tuple[float, int]:
        return 0.0, 0

    def add(self, value: Sale, accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator[0] + value.order.amount, accumulator[1] + 1

    def get_result(self, accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator


class WithWindow(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Iterable[tuple[float, int]]) -> Iterable[Revenue]:
        for amount, orders in elements:
            yield Revenue(key, context.window().start, round(amount, 2), orders)


def customer(order: Order) -> str:
    return order.customer


def product(sale: Sale) -> str:
    return sale.order.product


def placed(order: Order, _: int) -> int:
    return order.placed_ms


def build(
    env: StreamExecutionEnvironment,
    *,
    orders: int,
    orders_per_s: float | None,
    start_ms: int,
    sales_sink: Sink,
    alerts_sink: Sink,
    revenue_sink: Sink,
) -> None:
    """Adds the whole program to an environment; without a rate all orders are there at once."""
    rate = RateLimiterStrategy.per_second(orders_per_s) if orders_per_s else None
    generator = OrderGenerator(start_ms, orders_per_s or 1000.0)
    source = DataGeneratorSource(generator, count=orders, rate_limiter_strategy=rate)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(LATENESS).with_timestamp_assigner(placed)
    stream = env.from_source(source, strategy, "orders")
    totals: DataStream = stream.key_by(customer).process(CustomerTotals()).name("customer totals")
    totals.get_side_output(ALERTS).sink_to(alerts_sink).name("alerts")
    sales = AsyncDataStream.unordered_wait(totals, look_up_profile, timedelta(seconds=10), capacity=500)
    sales.name("profile call").sink_to(sales_sink).name("sales")
    windows = sales.key_by(product).window(TumblingEventTimeWindows.of(WINDOW))
    windows.aggregate(RevenueSum(), WithWindow()).name("revenue per 5 s").sink_to(revenue_sink).name(
        "revenue"
    )
