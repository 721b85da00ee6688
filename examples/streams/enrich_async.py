"""Enriches each order with a call to a slow service: forty calls of 100 ms, concurrently.

python examples/streams/enrich_async.py
"""

import asyncio
import time
from datetime import timedelta
from typing import Any

from emberflow.streams import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, StreamExecutionEnvironment

PRICES = {"coffee": 9.5, "tea": 6.0, "mug": 12.0}
ORDERS = [(number, ("coffee", "tea", "mug", "samovar")[number % 4]) for number in range(40)]


class PriceService(AsyncFunction):
    """Simulates a call over the network. The first request for each product fails."""

    def open(self, runtime_context: Any) -> None:
        self._asked: set[str] = set()

    async def async_invoke(self, value: tuple[int, str]) -> list[tuple[int, str, float | None]]:
        number, product = value
        await asyncio.sleep(0.1)
        if product not in self._asked:
            self._asked.add(product)
            raise ConnectionError(f"no answer for {product}")
        return [(number, product, PRICES.get(product))]


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    priced = AsyncDataStream.ordered_wait_with_retry(
        env.from_collection(ORDERS),
        PriceService(),
        timedelta(seconds=5),
        AsyncRetryStrategy.fixed_delay(max_attempts=3, backoff_time_millis=50),
        capacity=100,
    )
    started = time.monotonic()
    with priced.execute_and_collect("enrich") as results:
        found = list(results)
    seconds = time.monotonic() - started
    for number, product, price in found[:4]:
        print(f"order {number}: {product:<8} {'no such product' if price is None else f'{price:.2f}'}")
    total = sum(price for _, _, price in found if price is not None)
    print(f"… {len(found)} orders for {total:.2f}, calls of {len(found) * 0.1:.0f} s in all")
    print(f"took {seconds:.1f} s")


if __name__ == "__main__":
    main()
