"""`ArxivIterator`: the papers of one of arXiv's archives as records, and why others are left out."""

from collections.abc import Iterator
from typing import Any, ClassVar

from gristmill.errors import DamagedFile
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.io.files import lost_part, planned
from gristmill.stages.io.splitting import Splitter
from gristmill.stages.io.tar_members import TarMembers
from gristmill.stages.text.download.arxiv.archive import Project, TooLarge, paper_id, read_paper
from gristmill.stages.text.download.arxiv.tex_project import decode
from gristmill.stages.text.download.base import DocumentIterator, Dropped, LeftOut
from gristmill.stages.text.download.base.iterator import Found
from gristmill.storage import tar
from gristmill.storage.open_read import InputFile
from gristmill.tasks import FileSlice

NO_SOURCE, NO_TEX, NOT_UTF8, NOT_A_FILE = "no_source", "no_tex", "not_utf8", "not_a_file"
DAMAGED, TOO_LARGE = "damaged", "too_large"

REASONS = {
    NO_SOURCE: "arXiv has the PDF or PostScript of the paper only.",
    NO_TEX: "No file of the paper is TeX.",
    NOT_UTF8: "A byte of the paper is not UTF-8, and `compat` is set.",
    NOT_A_FILE: "The member of the archive is a link or a device.",
}
KINDS = {
    DAMAGED: "The archive cannot be read from there on, or the paper in it is not whole gzip or tar.",
    TOO_LARGE: "The paper has more than `max_tar_member_bytes`, `max_project_bytes` or `max_project_files`.",
}

NAMES, STYLES = "file_names", "styles"  # fields for the extractor: names of the files in `content`, and packages


class ArxivIterator(DocumentIterator):
    """Yields id, source_id and content, the texts of the TeX files, of each paper.

    `compat` leaves out what NeMo Curator leaves out: papers with a byte that is not UTF-8. `log_frequency` is accepted
    without effect: progress is shown by the run.
    """

    split: ClassVar[Splitter] = TarMembers(in_samples=False)
    block_bytes: ClassVar[int] = 64 * 1024**2

    def __init__(self, log_frequency: int = 1000, *, compat: bool = False, limits: IngestLimits | None = None) -> None:
        self._log_frequency = log_frequency
        self._compat = compat
        self._limits = limits or IngestLimits()

    def output_columns(self) -> list[str]:
        return ["id", "source_id", "content"]

    def iterate(self, file_path: str) -> Iterator[dict[str, Any]]:
        """Yield the papers of a whole archive, and nothing about others."""
        for found in self.iterate_part(FileSlice(file_path)):
            if isinstance(found, dict):
                yield {name: found[name] for name in self.output_columns()}

    def iterate_part(self, part: FileSlice) -> Iterator[Found]:
        source = part.path.rpartition("/")[2]
        with InputFile(part.path, planned=planned(part)) as file:
            start, end = (0, file.size) if part.part is None else part.part
            read = _reading(file)
            try:
                for member in tar.members(read, start, end, who=file.path, is_last=end >= file.size):
                    found = self._paper(read, member, file.path, source)
                    if found is not None:
                        yield found
            except DamagedFile as error:
                yield lost_part(error, file.path)

    def _paper(self, read: tar.Read, member: tar.Member, path: str, source: str) -> Found | None:
        record: dict[str, Any] = {"id": paper_id(member.name), "source_id": source, "content": []}
        if not member.is_file:
            return None if member.is_directory else LeftOut(record, Dropped(NOT_A_FILE))
        most = self._limits.max_tar_member_bytes
        if member.size > most:
            return self._aside(f"expected at most {most:,} bytes; got {member.size:,}", TOO_LARGE, record, path, member)
        content = tar.content(read, member, path)
        try:
            project = read_paper(content, self._limits)
        except TooLarge as error:
            return self._aside(str(error), TOO_LARGE, record, path, member)
        except DamagedFile as error:
            return self._aside(str(error), DAMAGED, record, path, member)
        if project is None or not project.texts:
            return LeftOut(record, Dropped(NO_SOURCE if project is None else NO_TEX))
        return self._record(record, project)

    def _record(self, record: dict[str, Any], project: Project) -> Found:
        if self._compat:
            try:
                return record | {"content": [text.decode() for text in project.texts.values()]}
            except UnicodeDecodeError:
                return LeftOut(record, Dropped(NOT_UTF8))
        texts = {name: decode(content) for name, content in project.texts.items()}
        styles = {name: decode(content) for name, content in project.styles.items()}
        return record | {"content": list(texts.values()), NAMES: list(texts), STYLES: styles}

    def _aside(self, error: str, kind: str, record: dict[str, Any], path: str, member: tar.Member) -> Quarantined:
        paper = record["id"]
        return Quarantined(
            f"{member.name}: {error}", kind, document=paper, document_id=paper, source=path, block_start=member.start
        )


def _reading(file: InputFile) -> tar.Read:
    return lambda start, end: memoryview(file.read_range(start, end))
