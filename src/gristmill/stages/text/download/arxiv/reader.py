"""`ArxivArchiveReader`: papers of archives you already have."""

from dataclasses import dataclass, field

from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.io.partitioning import FilePartitioningStage
from gristmill.stages.text.download.arxiv.extract import ArxivExtractor
from gristmill.stages.text.download.arxiv.iterator import ArxivIterator
from gristmill.stages.text.download.base import DocumentIterateExtractStage
from gristmill.tasks import DocumentBatch, EmptyTask, Task


@dataclass(eq=False)
class ArxivArchiveReader(CompositeStage[EmptyTask, DocumentBatch]):
    """Read archives of arXiv (`arXiv_src_0704_001.tar`): text, id, source_id, title and abstract of each paper.

    Archives are split between papers, every `blocksize` (64 MiB). `compat` gives NeMo Curator's text.
    """

    file_paths: str | list[str]
    blocksize: int | str | None = None
    record_limit: int | None = None
    add_filename_column: bool | str = True
    compat: bool = field(default=False, kw_only=True)
    limits: IngestLimits = field(default=IngestLimits(), kw_only=True)
    name: str = field(default="arxiv_archive_reader", kw_only=True)

    def __post_init__(self) -> None:
        self.decompose()  # what is wrong with the parameters is reported here, not when the pipeline runs

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        listing = FilePartitioningStage(self.file_paths, blocksize=self.blocksize, file_extensions=[".tar"])
        reading = DocumentIterateExtractStage(
            ArxivIterator(compat=self.compat, limits=self.limits),
            ArxivExtractor(compat=self.compat, limits=self.limits),
            record_limit=self.record_limit,
            add_filename_column=self.add_filename_column,
        )
        return [listing, *reading.decompose()]  # type: ignore[list-item]  # stages are invariant in their tasks
