"""Readers and writers of things that are not documents: the parts they share know nothing of text."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.byte_batch import ByteBatch

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, StageError
from gristmill.pipeline import Pipeline
from gristmill.stages.io.files import FileReader, FileWriter, ReadingStage, part_options, planned, too_large
from gristmill.stages.text.io.reader.parquet import ParquetReaderStage
from gristmill.storage.open_read import read_all
from gristmill.tasks import FileGroupTask, TableBatch


@dataclass(eq=False)
class _PayloadReaderStage(ReadingStage[ByteBatch]):
    name: str = field(default="payload_reader", kw_only=True)

    def process(self, task: FileGroupTask) -> ByteBatch:
        options = part_options(task.reader_config, self.read_kwargs)
        payloads, names = [], []
        for part in task.parts():
            content = bytes(read_all(part.path, planned=planned(part), storage_options=options))
            if len(content) > self.most_bytes():
                self.context.quarantine(too_large(part.path, "the whole file", len(content), self.most_bytes()))
                continue
            payloads.append(content)
            names.append(part.path.rpartition("/")[2])
        return ByteBatch.of(payloads, names)


@dataclass(eq=False)
class _PayloadReader(FileReader[ByteBatch]):
    makes: ClassVar[str] = "payload"
    task_type: str = "payload"
    file_extensions: list[str] = field(default_factory=lambda: [".bin"])
    name: str = "payload_reader"

    def reading_stage(self) -> ReadingStage[ByteBatch]:
        return _PayloadReaderStage(self.fields, self.read_kwargs)


@dataclass(eq=False)
class _PayloadWriter(FileWriter[ByteBatch]):
    file_extension: str = "frames"
    name: str = "payload_writer"

    def encode(self, batch: ByteBatch) -> Iterator[bytes]:
        for name, payload in zip(batch.names, batch.data.to_pylist(), strict=True):
            yield f"{name} {len(payload)}\n".encode() + payload


@pytest.mark.parametrize("workers", [0, 2])
def test_payloads_are_read_grouped_written_and_counted_as_documents_are(tmp_path, workers):
    (tmp_path / "in").mkdir()
    for number in range(6):
        (tmp_path / "in" / f"{number}.bin").write_bytes(bytes([number]) * (1000 if number == 4 else 10))
    reader = _PayloadReader(str(tmp_path / "in"), files_per_partition=2, max_document_bytes=100)
    pipeline = Pipeline("payloads", stages=[reader, _PayloadWriter(str(tmp_path / "out"))])
    result = pipeline.run(LocalExecutor(num_workers=workers), quiet=True, max_quarantined=None)

    assert (result.read, result.written, result.quarantined) == (6, 5, 1)
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").glob("*.frames")} == {
        f"{a}+1.frames": b"".join(b"%d.bin 10\n" % n + bytes([n]) * 10 for n in (a, a + 1) if n != 4) for a in (0, 2, 4)
    }


def test_a_reader_takes_the_one_task_type_it_makes(tmp_path):
    with pytest.raises(ConfigError, match="payload_reader: expected task_type 'payload'; got 'document'"):
        _PayloadReader(str(tmp_path), task_type="document")


def test_a_batch_without_columns_cannot_be_written_by_columns(tmp_path):
    with pytest.raises(StageError, match=r"payload_writer: expected a batch with columns .*; got a ByteBatch"):
        _PayloadWriter(str(tmp_path), fields=["a"]).process(ByteBatch.of([b"x"]))


class _Measures(TableBatch):
    """Rows that are not documents."""


@dataclass(eq=False)
class _MeasuresReaderStage(ParquetReaderStage):
    kind: ClassVar[type[TableBatch]] = _Measures
    name: str = field(default="measures_reader", kw_only=True)


def test_rows_of_tables_become_whatever_batch_a_reader_says(tmp_path):
    pq.write_table(pa.table({"width": [1, 2, 3]}), tmp_path / "a.parquet")
    batch = _MeasuresReaderStage().process(FileGroupTask("d", [str(tmp_path / "a.parquet")]))

    assert type(batch) is _Measures
    assert batch.column("width").to_pylist() == [1, 2, 3]
