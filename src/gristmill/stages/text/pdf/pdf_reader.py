"""`PdfReader`: files of PDF to documents, one each."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gristmill.errors import DamagedFile
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.io.files import lost_part, planned
from gristmill.stages.io.partitioning import FilePartitioningStage
from gristmill.stages.text.download.base import DocumentIterateExtractStage, DocumentIterator, Dropped, LeftOut
from gristmill.stages.text.download.base.iterator import Found
from gristmill.stages.text.pdf.extract_pdf import TOO_LARGE
from gristmill.stages.text.pdf.pdf_extractor import PATH, PdfExtractor, PdfOptions
from gristmill.storage.open_read import InputFile
from gristmill.tasks import DocumentBatch, EmptyTask, FileSlice, Task

_TOGETHER = 64 * 1024**2  # bytes of files that are one partition


class PdfIterator(DocumentIterator):
    """Yields the content of each file, and its name as id."""

    def __init__(self, limits: IngestLimits | None = None) -> None:
        self._limits = limits or IngestLimits()

    def output_columns(self) -> list[str]:
        return ["id", "content"]

    def iterate(self, file_path: str) -> Iterator[dict[str, Any]]:
        for found in self.iterate_part(FileSlice(file_path)):
            if isinstance(found, dict):
                yield {name: found[name] for name in self.output_columns()}

    def iterate_part(self, part: FileSlice) -> Iterator[Found]:
        most = self._limits.max_pdf_bytes
        name = part.path.rpartition("/")[2]
        pieces: list[bytes] = []
        size = 0
        try:
            with InputFile(part.path, planned=planned(part)) as file:
                for piece in file.pieces():
                    size += len(piece)
                    if size > most:
                        break
                    pieces.append(piece)
        except DamagedFile as error:
            yield lost_part(error, part.path)
            return
        if size > most:
            record = {"id": name, "content": b""}
            yield LeftOut(record, Dropped(TOO_LARGE, max(size, part.file_size), f"≤ {most} bytes"))
        else:
            yield {"id": name, "content": b"".join(pieces), PATH: part.path}


@dataclass(eq=False)
class PdfReader(CompositeStage[EmptyTask, DocumentBatch]):
    """Read PDF files: text, id (the name of the file), num_pages, scanned_share and text_garbled_share of each.

    The text is in the order it is read: column by column, without headers and footers, divided words put together.
    Files that need a model to be read (`needs_ocr`) and others without text are dropped by reason. Needs the extra
    `pdf`. Neighbouring files are read together, up to `blocksize` (64 MiB) of them.
    """

    file_paths: str | list[str]
    blocksize: int | str | None = None
    max_scanned_share: float = 0.5
    max_garbled_share: float = 0.2
    add_filename_column: bool | str = True
    limits: IngestLimits = field(default=IngestLimits(), kw_only=True)
    name: str = field(default="pdf_reader", kw_only=True)

    def __post_init__(self) -> None:
        self.decompose()  # what is wrong with the parameters is reported here, not when the pipeline runs

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        together = self.blocksize or _TOGETHER
        listing = FilePartitioningStage(self.file_paths, blocksize=together, file_extensions=[".pdf", ".PDF"])
        options = PdfOptions(self.max_scanned_share, self.max_garbled_share)
        reading = DocumentIterateExtractStage(
            PdfIterator(self.limits),
            PdfExtractor(options, self.limits),
            add_filename_column=self.add_filename_column,
        )
        return [listing, *reading.decompose()]  # type: ignore[list-item]  # stages are invariant in their tasks
