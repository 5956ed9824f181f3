"""`ArrowReader`: Arrow IPC files and streams."""

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from gristmill.stages.text.io.kwargs import part_options
from gristmill.stages.text.io.reader.file_reader import _FileReader
from gristmill.stages.text.io.reader.reading_stage import _ReadingStage, planned
from gristmill.stages.text.io.reader.whole_files import damaged, read_tables
from gristmill.stages.text.io.reader.wrong_format import Wrong, wrong_for_arrow
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import read_all
from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice

_FILE_MAGIC = b"ARROW1"


@dataclass(eq=False)
class ArrowReader(_FileReader):
    """Read Arrow IPC files or streams, which of the two is seen from their first bytes; each file is one batch."""

    file_extensions: list[str] = field(default_factory=lambda: [".arrow", ".arrows", ".feather", ".ipc"])
    name: str = "arrow_reader"

    def _reading(self) -> _ReadingStage:
        return ArrowReaderStage(self.fields, self.read_kwargs, name=self.name)


@dataclass(eq=False)
class ArrowReaderStage(_ReadingStage):
    """Read whole Arrow files."""

    name: str = field(default="arrow_reader", kw_only=True)

    _format: ClassVar[str] = "Arrow"

    def _wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        return wrong_for_arrow(sample, is_whole=is_whole)

    def _columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        return list(_read(FileSlice(path), options).column_names)

    def process(self, task: FileGroupTask) -> DocumentBatch:
        options = part_options(task.reader_config, self.read_kwargs)
        return read_tables(task, self.fields, lambda part: _read(part, options), self.context)


def _read(part: FileSlice, options: StorageOptions | None) -> pa.Table:
    content = pa.py_buffer(read_all(part.path, planned=planned(part), storage_options=options))
    try:
        is_file = (
            content.slice(0, len(_FILE_MAGIC)).to_pybytes() == _FILE_MAGIC if content.size > len(_FILE_MAGIC) else False
        )
        return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(content).read_all()
    except (OSError, pa.ArrowException) as error:
        raise damaged(part, "an Arrow IPC file or stream", error) from error
