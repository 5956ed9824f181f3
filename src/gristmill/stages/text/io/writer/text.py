"""`TextWriter`: the texts of documents and nothing else of them, a file for each or a line for each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from gristmill.errors import ConfigError, StageError, nearest
from gristmill.stages.text.io.writer.document_writer import Part, _DocumentWriter, cut_lines
from gristmill.storage.atomic_write import Chunk
from gristmill.tasks import DocumentBatch, FileGroupTask

_KINDS = ("file", "line")
_BYTE_ORDER_MARK = "\ufeff"
_AT_ONCE = 1000


@dataclass(eq=False)
class TextWriter(_DocumentWriter):
    """Write the column `text_field` of each document as plain text; its other columns are not written.

    By default each document is a file: `<path>/<task id>.txt`, or `<task id>.0000.txt` and so on where a batch has
    several. With `document_per="line"` each is a line of one file for the batch, and `max_file_bytes` cuts larger ones;
    a text that cannot be a line, because it has line ends in it or is blank, goes to quarantine. `TextReader` gives
    back every text as it was. `file_extension="txt.gz"` (or `.zst`, `.bz2`) compresses. `write_kwargs` takes
    `storage_options`.
    """

    file_extension: str = "txt"
    name: str = "text_writer"
    text_field: str = field(default="text", kw_only=True)
    document_per: Literal["file", "line"] = field(default="file", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.document_per not in _KINDS:
            close = nearest(str(self.document_per), _KINDS)
            raise ConfigError(
                f"{self.name}: expected document_per to be one of {_KINDS}; got {self.document_per!r}{close}"
            )
        if self.document_per == "file" and self.max_file_bytes is not None:
            raise ConfigError(f"{self.name}: expected no max_file_bytes where each document is a file of its own")
        if self.fields is not None:
            raise ConfigError(f"{self.name}: expected text_field, the one column that is written; got fields")

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def process(self, task: DocumentBatch) -> FileGroupTask:
        if self.document_per == "line" or not task.num_items:
            return super().process(task)
        return self._write_all(task, self._files(task))

    def encode(self, batch: DocumentBatch) -> Iterable[Chunk]:
        if self.document_per == "line":
            yield from self._lines(batch)
            return
        for _, chunks in self._files(batch):
            yield from chunks

    def parts(self, batch: DocumentBatch, most: int) -> Iterator[Part]:
        return cut_lines(self._lines(batch), most)

    def _files(self, batch: DocumentBatch) -> Iterator[Part]:
        for text in self._texts(batch):
            yield 1, [_safe(text).encode()]

    def _lines(self, batch: DocumentBatch) -> Iterator[bytes]:
        for start in range(0, batch.num_items, _AT_ONCE):
            texts = self._texts(batch.slice(start, _AT_ONCE))
            for row, text in enumerate(texts, start):
                if not text.strip(" \t\r") or "\n" in text or text.endswith("\r"):
                    what = "a blank text" if not text.strip() else "one with line ends"
                    raise StageError(
                        f"{self.name}: expected texts that are one line each; got {what} in row {row}. "
                        'document_per="file" writes any text'
                    )
            lines = [f"{text}\n" for text in texts]
            if lines and not start:
                lines[0] = _safe(lines[0])
            yield "".join(lines).encode()

    def _texts(self, batch: DocumentBatch) -> list[str]:
        texts: list[str] = batch.column(self.text_field).to_pylist()
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise StageError(f"{self.name}: expected a text in {self.text_field!r}; got {text!r:.200} in row {row}")
        return texts


def _safe(text: str) -> str:
    """A text at the beginning of a file, where readers remove a byte order mark: one of its own is doubled."""
    return _BYTE_ORDER_MARK + text if text.startswith(_BYTE_ORDER_MARK) else text
