"""`JsonlWriter`: one JSON object a line. Fields no stage has changed are written as they were read, byte for byte."""

from collections.abc import Iterable
from dataclasses import dataclass

from gristmill.stages.io.files import FileWriter
from gristmill.storage.atomic_write import Chunk
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_encoding import encode_lines


@dataclass(eq=False)
class JsonlWriter(FileWriter[DocumentBatch]):
    """Write each batch as `<path>/<task id>.jsonl`.

    `file_extension="jsonl.gz"` (or `.zst`, `.bz2`) compresses. `fields` are the only ones written. A batch whose
    documents were all dropped writes no file. `write_kwargs` takes `storage_options`.
    """

    file_extension: str = "jsonl"
    name: str = "jsonl_writer"

    def encode(self, batch: DocumentBatch) -> Iterable[Chunk]:
        untouched = batch.untouched_lines()
        return encode_lines(batch) if untouched is None else untouched
