"""`JsonlWriter`: one JSON object per line. Fields no stage has changed are written as they were read, byte for byte."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from gristmill.stages.text.io.writer.document_writer import Part, _DocumentWriter, cut_lines
from gristmill.storage.atomic_write import Chunk
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_encoding import encode_lines


@dataclass(eq=False)
class JsonlWriter(_DocumentWriter):
    """Write each batch as `<path>/<task id>.jsonl`.

    `file_extension="jsonl.gz"` (or `.zst`, `.bz2`) compresses. `fields` are the only ones written. A batch whose
    documents were all dropped writes no file. With `max_file_bytes`, counted before they are compressed, a batch
    becomes several files, `<task id>.0000.jsonl` and so on, where one would be larger; a longer line has its own.
    `write_kwargs` takes `storage_options`.
    """

    joins_files: ClassVar[bool] = True  # compressed ones too: gzip, zstd and bzip2 read one member after another

    file_extension: str = "jsonl"
    name: str = "jsonl_writer"

    def encode(self, batch: DocumentBatch) -> Iterable[Chunk]:
        untouched = batch.untouched_lines()
        return encode_lines(batch) if untouched is None else untouched

    def parts(self, batch: DocumentBatch, most: int) -> Iterator[Part]:
        return cut_lines(self.encode(batch), most)
