"""Small files of one partition, joined to larger ones before they are committed.

A stage that takes a file of records apart into batches of 64 makes hundreds of tasks of it, and a writer makes a file
of each task. Where files of a format may be put end to end, and the writer says so, those of one partition are: in
order, up to the size a file usually has. What is joined depends on names and sizes only, so it is always the same. The
joined file has the name of its first part.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gristmill.engine.plan import Plan
from gristmill.runs.ledger import CommitRecord
from gristmill.stages.io.files import FileWriter
from gristmill.storage.atomic_write import force_file, remove, stage_file
from gristmill.storage.file_system import is_url, plain
from gristmill.tasks import StagedFile

JOINED_BYTES = 32 * 1024**2
_PIECE_BYTES = 1 << 20
_NUMBER = re.compile(r"(\d+)")


def joined_directories(plan: Plan) -> tuple[str, ...]:
    """The directories of a plan in which small files are joined; none if no stage makes many small tasks."""
    stages = [stage for group in plan.groups for stage in group.stages]
    if not any(stage.makes_small_tasks for stage in stages):
        return ()
    writers = [stage for stage in stages if isinstance(stage, FileWriter) and stage.joins_files]
    # Where a user has said how large files may be, they are so already, and nothing is added to them.
    writers = [writer for writer in writers if writer.most_bytes is None]
    return tuple(f"{writer.path.rstrip('/')}/" for writer in writers if not is_url(writer.path))


def join_small_files(record: CommitRecord, directories: Sequence[str], *, durable: bool) -> CommitRecord:
    """Return the record of a partition whose small files in these directories have been joined."""
    if len(record.files) < 2:
        return record
    small = [file for file in record.files if file.final.startswith(tuple(directories))]
    files = [file for file in record.files if file not in small]
    groups = _groups(sorted(small, key=_place))
    files += [group[0] if len(group) == 1 else _joined(group, durable=durable) for group in groups]
    return record._replace(files=tuple(sorted(files, key=lambda file: file.final)))


def _place(file: StagedFile) -> list[str | int]:
    """The order of parts, in which the tenth never comes before the second, however many digits they have."""
    return [int(piece) if piece.isdecimal() else piece for piece in _NUMBER.split(file.final)]


def _groups(files: Sequence[StagedFile]) -> Iterator[list[StagedFile]]:
    group: list[StagedFile] = []
    size = 0
    for file in files:
        same = not group or _directory(file) == _directory(group[0])
        if group and (size + file.num_bytes > JOINED_BYTES or not same):
            yield group
            group, size = [], 0
        group.append(file)
        size += file.num_bytes
    if group:
        yield group


def _directory(file: StagedFile) -> str:
    return file.final.rpartition("/")[0]


def _joined(group: Sequence[StagedFile], *, durable: bool) -> StagedFile:
    first = group[0]
    written = stage_file(f"{first.temporary}.joined", _content(group))
    if durable:
        force_file(written.path)
    for file in group:
        remove(file.temporary)
    documents = sum(file.num_documents for file in group)
    return StagedFile(written.path, first.final, written.num_bytes, documents, written.checksum)


def _content(group: Sequence[StagedFile]) -> Iterator[bytes]:
    for file in group:
        with Path(plain(file.temporary)).open("rb") as part:
            while piece := part.read(_PIECE_BYTES):
                yield piece
