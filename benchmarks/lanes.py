"""Requests a second of an async stage, and of a bare asyncio client that asks the same of the same server.

    python -m benchmarks.lanes [--requests 20000] [--in-flight 256] [--rounds 3]

Both sides keep `--in-flight` requests under way in one process. Two forms of the stage: one document a task, with a
lane for every request; and many documents a task, with fewer lanes over one window they share. The server tells the
rate, from the first request to the last answer, so what starts or ends beside it is in nobody's figure. Sides take
turns.
"""

import argparse
import asyncio
import statistics
from collections.abc import Callable

import pyarrow as pa
from tests.slow_http import Client, serving, take_statistics

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch

BATCH = 32


class AskEach(ProcessingStage[DocumentBatch, DocumentBatch]):
    """One request a document; `window` bounds the requests under way of all calls together."""

    def __init__(self, port: int, window: int, lanes: int) -> None:
        self.port = port
        self.window = window
        self.lanes = lanes

    def num_workers(self) -> int:
        return 1

    async def setup(self, worker_metadata: object = None) -> None:  # type: ignore[override]
        self._client = Client(self.port)
        self._slots = asyncio.Semaphore(self.window)

    async def teardown(self) -> None:  # type: ignore[override]
        await self._client.close()

    async def process(self, task: DocumentBatch) -> DocumentBatch:  # type: ignore[override]
        table = task.to_pyarrow()
        keys = table["id"].to_pylist()
        answers = [await self._ask(keys[0])] if len(keys) == 1 else await asyncio.gather(*map(self._ask, keys))
        return task.with_data(table.append_column("answer", pa.array(answers)))

    async def _ask(self, key: str) -> str:
        async with self._slots:
            return await self._client.ask(key)


def through_gristmill(port: int, requests: int, in_flight: int, documents: int) -> None:
    """Have a pipeline ask, `documents` a task."""
    # A task holds its lane until its slowest document is answered: with one try in a hundred hanging for a second, most
    # lanes wait for just that. Enough of them that the others fill the window.
    lanes = in_flight if documents == 1 else 8 * in_flight // documents
    pipeline = Pipeline(name="lanes")
    pipeline.add_stage(AskEach(port, in_flight, lanes))
    keys = [f"k{n}" for n in range(requests)]
    tasks = [
        DocumentBatch(dataset_name="asked", data=pa.table({"id": keys[start : start + documents]}))
        for start in range(0, requests, documents)
    ]
    result = pipeline.run(LocalExecutor(num_workers=1), initial_tasks=tasks)
    answered = sum(task.num_items for task in result.tasks)
    if answered != requests:
        raise AssertionError(f"expected {requests} answers; got {answered}")


def bare(port: int, requests: int, in_flight: int) -> None:
    """Have as many coroutines ask, one request after another each."""

    async def ask_all() -> None:
        client = Client(port)
        keys = iter([f"k{n}" for n in range(requests)])

        async def ask_some() -> None:
            for key in keys:
                await client.ask(key)

        await asyncio.gather(*(ask_some() for _ in range(in_flight)))
        await client.close()

    asyncio.run(ask_all())


def rate_of(port: int, ask: Callable[[], None]) -> float:
    """Requests a second the server saw."""
    take_statistics(port)
    ask()
    seen = take_statistics(port)
    return seen.requests / (seen.last_s - seen.first_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    n, w = given.requests, given.in_flight
    with serving() as port:
        sides: dict[str, Callable[[], None]] = {
            "bare asyncio client": lambda: bare(port, n, w),
            "one document a task": lambda: through_gristmill(port, n, w, 1),
            f"{BATCH} documents a task": lambda: through_gristmill(port, n, w, BATCH),
        }
        rates: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(given.rounds):
            for name, ask in sides.items():
                rates[name].append(rate_of(port, ask))
    base = statistics.median(rates["bare asyncio client"])
    for name, found in rates.items():
        middle = statistics.median(found)
        print(f"{name:24} {middle:8.0f} requests/s  {middle / base:6.1%}  ({', '.join(f'{r:.0f}' for r in found)})")


if __name__ == "__main__":
    main()
