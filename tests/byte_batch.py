"""`ByteBatch`: a kind of item nobody has taught the engine, to see that it need not be taught any.

Below it, what a modality has beside its batch: a reader, a stage that cannot cope with some items, a filter, a writer.
A file holds payloads, each behind its length.
"""

import hashlib
import os
import signal
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from tests.fault.hold import wait_while_held

from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.io.files import FileWriter
from gristmill.stages.io.partitioning import FilePartitioningStage
from gristmill.tasks import Batch, FileGroupTask, ItemRecord

BAD, FATAL = b"BAD", b"KILL"  # how items begin that a stage raises for, and that end its process
LEAST_BYTES = 8


@dataclass
class ByteBatch(Batch[pa.LargeBinaryArray]):
    """Payloads of bytes, end to end in one array, each with a name."""

    names: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, payloads, names=None, dataset_name="bytes"):
        names = [f"item-{number}" for number in range(len(payloads))] if names is None else names
        return cls(dataset_name, pa.array(payloads, pa.large_binary()), names=list(names))

    @property
    def num_items(self):
        return len(self.names)

    def payload(self, row):
        return self.data[row].as_buffer()

    def take(self, rows):
        taken = self.data.take(pa.array(rows, pa.int64()))
        return type(self)(self.dataset_name, taken, names=[self.names[row] for row in rows])

    @classmethod
    def concat(cls, batches):
        names = [name for batch in batches for name in batch.names]
        return cls(batches[0].dataset_name, pa.concat_arrays([batch.data for batch in batches]), names=names)

    def item(self, row):
        size = self.payload(row).size
        source = ", ".join(self.sources())
        return ItemRecord(self.names[row], source, f"{size} bytes", payload=self.payload(row), extension=".bytes")


def encoded(payloads):
    return b"".join(struct.pack(">I", len(payload)) + payload for payload in payloads)


def decoded(content):
    payloads, position = [], 0
    while position < len(content):
        (size,) = struct.unpack_from(">I", content, position)
        payloads.append(bytes(content[position + 4 : position + 4 + size]))
        position += 4 + size
    return payloads


class ReadPayloads(ProcessingStage[FileGroupTask, ByteBatch]):
    """Makes a batch of each file."""

    name = "read_payloads"

    def process(self, task):
        batches = []
        for path in task.data:
            payloads = decoded(Path(path).read_bytes())
            batches.append(ByteBatch.of(payloads, [f"{Path(path).stem}#{row}" for row in range(len(payloads))]))
        return ByteBatch.concat(batches)


class InspectPayloads(ProcessingStage[ByteBatch, ByteBatch]):
    """Raises for some items and is ended by others. Runs in a process of its own, so that batches have to travel."""

    name = "inspect_payloads"
    fusible = False

    def __init__(self, rounds=0):
        self.rounds = rounds  # of labour for each batch; a million are a third of a second or so

    def process(self, task):
        wait_while_held()
        if self.rounds:
            hashlib.pbkdf2_hmac("sha256", b"labour", b"salt", self.rounds)
        for row in range(task.num_items):
            payload = bytes(task.payload(row))
            if payload.startswith(FATAL):
                os.kill(os.getpid(), signal.SIGKILL)
            if payload.startswith(BAD):
                raise ValueError(f"cannot inspect {task.names[row]}")
        return task


class DropShortPayloads(ProcessingStage[ByteBatch, ByteBatch]):
    """A filter in plain Python."""

    name = "drop_short_payloads"

    def process(self, task):
        sizes = [task.payload(row).size for row in range(task.num_items)]
        short = [size < LEAST_BYTES for size in sizes]
        self.context.drop(task, short, reason="short", values=sizes, threshold=f"at least {LEAST_BYTES} bytes")
        return task.filter([not is_short for is_short in short])


@dataclass(eq=False)
class WritePayloads(FileWriter):
    """Writes what `ReadPayloads` reads."""

    file_extension: str = "payloads"
    name: str = "write_payloads"

    def encode(self, batch):
        return [encoded([bytes(batch.payload(row)) for row in range(batch.num_items)])]


def stages(source, work, *, rounds=0):
    return [
        FilePartitioningStage(str(source)),
        ReadPayloads(),
        InspectPayloads(rounds),
        DropShortPayloads(),
        WritePayloads(f"{work}/out"),
    ]


def run(source, work, executor, *, rounds=0, **options):
    return Pipeline("payloads", stages=stages(source, work, rounds=rounds)).run(
        executor, checkpoint_path=f"{work}/run", rejects_path=f"{work}/rejects", **options
    )


def make_payloads(directory, files=4, items=10, *, fatal=False):
    """Write files whose content depends on their number: in each an item too short, in every other one a bad one."""
    directory.mkdir(parents=True)
    for number in range(files):
        payloads = [b"%d-%d:" % (number, row) + bytes(range(256)) * (row + number + 1) for row in range(items)]
        payloads[3] = b"%d" % number
        if number % 2 == 0:
            payloads[min(6, items - 2)] = BAD + payloads[0]
        if fatal and number == 1:
            payloads[7] = FATAL + payloads[7]
        (directory / f"part-{number:03d}.payloads").write_bytes(encoded(payloads))


def expected_output(directory):
    """What the pipeline leaves of each file, as its definition says."""
    found = {}
    for file in sorted(directory.iterdir()):
        kept = [p for p in decoded(file.read_bytes()) if len(p) >= LEAST_BYTES and not p.startswith((BAD, FATAL))]
        found[file.name] = encoded(kept)
    return found


def main():
    from gristmill.backends.local import LocalExecutor

    source, work, address, limit, rounds = sys.argv[1:]
    if address:
        import ray

        from gristmill.backends.ray_actor_pool import RayActorPoolExecutor

        ray.init(address=address, log_to_driver=False)
        executor = RayActorPoolExecutor()
    else:
        executor = LocalExecutor(num_workers=2, memory_limit=limit or None)
    result = run(source, work, executor, rounds=int(rounds), max_quarantined=1.0, quiet=True)
    print(result.read, result.written)


if __name__ == "__main__":
    main()
