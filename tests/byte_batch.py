"""`ByteBatch`: a kind of item nobody has taught the engine, to see that it need not be taught any."""

from dataclasses import dataclass, field

import pyarrow as pa

from gristmill.tasks import Batch, ItemRecord


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
