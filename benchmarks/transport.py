"""What it costs to hand 63 MB to another process and to get it back, by what the task holds.

    python -m benchmarks.transport [--record]

Each task is packed into shared memory, mapped, packed again and mapped again, in one process: the copies and the page
faults are the same as between two. Kinds take turns. Processor time is what to compare; the clock is the machine's.
"""

import pickle
import statistics
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from benchmarks.record import header, record

from gristmill.tasks import Batch, DocumentBatch, TableBatch, Task
from gristmill.worker.wire import pack, unpack

ITEMS, ITEM_BYTES = 1_000, 63_000
ROUNDS = 15


class _Listed(Batch[list[object]]):
    """A list of bytes or of arrays."""

    @property
    def num_items(self) -> int:
        return len(self.data)


class _OneArray(Batch[pa.LargeBinaryArray]):
    """Bytes end to end in one Arrow array."""

    @property
    def num_items(self) -> int:
        return len(self.data)


class _OwnDocuments(DocumentBatch):
    """A user's subclass."""


class _InBand(Task[list[object]]):
    """As everything but documents travelled once: a pickle, and a copy of it in shared memory."""

    num_items = 1

    @classmethod
    def there_and_back(cls, task: Task[object]) -> Task[object]:
        for _ in range(2):
            body = pickle.dumps(task, protocol=5)
            block = np.frombuffer(body, np.uint8).copy()
            task = pickle.loads(block)
        return task


def _there_and_back(task: Task[object]) -> Task[object]:
    return unpack(pack(unpack(pack(task))))


def _kinds() -> dict[str, tuple[Task[object], Callable[[Task[object]], Task[object]]]]:
    payloads = [np.random.default_rng(n).bytes(ITEM_BYTES) for n in range(ITEMS)]
    table = pa.table({"payload": pa.array(payloads, pa.large_binary())})
    arrays: list[object] = [np.frombuffer(payload, np.uint8).copy() for payload in payloads]
    tasks: dict[str, Task[object]] = {
        "documents": DocumentBatch("d", table),
        "subclass_of_documents": _OwnDocuments("d", table),
        "table": TableBatch("d", table),
        "arrow_array": _OneArray("d", table.column(0).combine_chunks()),
        "numpy_arrays": _Listed("d", arrays),
        "bytes": _Listed("d", list(payloads)),
    }
    kinds = {name: (task, _there_and_back) for name, task in tasks.items()}
    return kinds | {"numpy_arrays_in_band": (_InBand("d", arrays), _InBand.there_and_back)}


def main() -> None:
    """Time all kinds in turn and print seconds and ratios."""
    began = header()
    kinds = _kinds()
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for _ in range(ROUNDS):
        for name, (task, act) in kinds.items():
            clock, cpu = time.perf_counter(), time.process_time()
            arrived = act(task)
            taken[name].append((time.process_time() - cpu, time.perf_counter() - clock))
            assert arrived.num_items == task.num_items
            del arrived
    cpu_s = {name: statistics.median(cpu for cpu, _ in times) for name, times in taken.items()}
    result: dict[str, object] = {
        "megabytes": ITEMS * ITEM_BYTES / 1e6,
        "cpu_s": {name: round(seconds, 4) for name, seconds in cpu_s.items()},
        "clock_s": {name: round(statistics.median(s for _, s in times), 4) for name, times in taken.items()},
        "cpu_ratio_to_documents": {name: round(seconds / cpu_s["documents"], 2) for name, seconds in cpu_s.items()},
        "rounds": ROUNDS,
    }
    record("transport", began, result)


if __name__ == "__main__":
    main()
