"""`DocumentDownloader` fetches one file; `DocumentDownloadStage` fetches those of a run.

A file that is there counts only if the note beside it says that it is whole, and whose it is. "It exists and is not
empty" is how half files get in: from a tool that was killed, from a copy that was cut short.
"""

import copy
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from gristmill.errors import DownloadFailed, StageError
from gristmill.secrets import without_url_secrets
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import Quarantined
from gristmill.stages.io.splitting import Splitter, WholeFiles
from gristmill.stages.resources import Resources
from gristmill.stages.text.download.base.parts import parts_of_file
from gristmill.storage.download_notes import Note, claimed_name
from gristmill.storage.file_system import FileStatus, absolute, disk_path, file_system
from gristmill.storage.transfer import RemoteFile
from gristmill.tasks import FileGroupTask, FileSlice

DOWNLOAD_FAILED = DownloadFailed.kind
KINDS = {DOWNLOAD_FAILED: "The file could not be fetched, or not all of it."}
# How a downloader is run, not what it gives: changing these must not throw away finished work.
_NOT_CONTENT = {"_download_dir", "_verbose", "verbose", "transfer"}


class DocumentDownloader(ABC):
    """Subclass it and write `_get_output_filename` and `_download_to_path`.

    `trusts_existing_files = True` takes any file that is there and not empty for whole. By default such a file is
    fetched again unless it was fetched here: there is no telling what wrote it, and whether that finished.
    """

    trusts_existing_files: ClassVar[bool] = False

    def __init__(self, download_dir: str, verbose: bool = False) -> None:  # noqa: FBT001, FBT002  # as users know it
        self._download_dir = str(download_dir)
        self._verbose = verbose

    @abstractmethod
    def _get_output_filename(self, url: str) -> str:
        """Return the name of the file a URL becomes, without a directory. No two URLs may have the same."""

    @abstractmethod
    def _download_to_path(self, url: str, path: str) -> tuple[bool, str | None]:
        """Fetch the URL into a file at this path; return (True, None), or (False, what went wrong)."""

    def download(self, url: str) -> str | None:
        """Fetch a file, unless it is there, and return its path. It appears under its name when it is whole."""
        note = self._note(url)
        with note.held():
            if note.is_complete() or (self.trusts_existing_files and note.has_content()):
                return note.path
            success, error = self._said(self._download_to_path(url, note.part_path))
            if not success:
                raise DownloadFailed(f"{url}: expected to be fetched; got {error or 'no reason'}")
            note.finish()
        return note.path

    def download_file(self, file: RemoteFile) -> str:
        """Fetch a file about which more than its URL may be known. The stage calls this one."""
        path: object = self.download(file.url)
        if path is None:  # how some subclasses say that a download has failed
            raise DownloadFailed(f"{file.url}: expected {type(self).__name__}.download to return a path; got None")
        if not isinstance(path, str):
            raise StageError(f"{type(self).__name__}.download: expected to return a path; got {path!r:.200}")
        return path

    def _said(self, answer: object) -> tuple[bool, str | None]:
        """What `_download_to_path` has returned, if it has the right form."""
        if isinstance(answer, tuple) and len(answer) == 2:
            return answer
        who = f"{type(self).__name__}._download_to_path"
        raise StageError(f"{who}: expected to return (True, None) or (False, what went wrong); got {answer!r:.200}")

    def num_workers_per_node(self) -> int | None:
        """Return how many downloads may be under way on a machine, or None if their number does not matter."""
        return None

    @property
    def downloads_at_once(self) -> int:
        """How many calls of `download` one worker may have under way, in threads; 1 unless a subclass says more."""
        return 1

    @property
    def streams(self) -> bool:
        """Whether files are read where they are, and not stored; then `locate` is called in place of `download`."""
        return False

    def locate(self, file: RemoteFile) -> FileStatus:
        """Return where a file can be read, its size and its version (`etag:"…"`). For a downloader that streams."""
        raise NotImplementedError(f"{type(self).__name__}: a downloader that streams must define locate")

    @property
    def keeps_files(self) -> bool:
        """Whether files stay when everything made of them is committed; if not, `release` removes them."""
        return True

    def release(self, path: str) -> None:
        """Remove a file it has downloaded. Called in the driver, for a downloader that does not keep its files."""
        note = Note(Path(path), "")
        if Path(path).parent.is_dir():
            with note.held():
                note.forget()

    def check_ready(self) -> None:
        """Raise MissingDependency or ConfigError if something is missing; called while the plan is made."""

    def _note(self, url: str) -> Note:
        directory = disk_path(self._download_dir, who=type(self).__name__)
        return Note(claimed_name(directory, self._get_output_filename(url), who=type(self).__name__), url)


@dataclass(eq=False)
class DocumentDownloadStage(ProcessingStage[FileGroupTask, FileGroupTask]):
    """Fetch files: URLs in, paths out, or parts of files where the stage that reads them can use those.

    A file that cannot be fetched is tried again later, and after the last try it goes into quarantine as a loss. It is
    never an empty batch.
    """

    transient_errors: ClassVar[tuple[type[BaseException], ...]] = (DownloadFailed,)

    downloader: DocumentDownloader
    resources = Resources(cpus=0.5)
    _split: Splitter = field(default=WholeFiles(), init=False, repr=False)
    _block_bytes: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self.name = f"download_{type(self.downloader).__name__.lower()}"
        self.lanes = self.downloader.downloads_at_once

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], []

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], []

    def num_workers(self) -> int | None:
        if self.lanes > 1:  # all downloads of a machine in one worker: they wait, and are counted together
            return super().num_workers() or 1
        return super().num_workers() or self.downloader.num_workers_per_node()

    def check_ready(self) -> None:
        self.downloader.check_ready()

    def get_config(self) -> dict[str, object]:
        settings = {k: v for k, v in vars(self.downloader).items() if k not in _NOT_CONTENT}
        return {"downloader": type(self.downloader), "settings": settings}

    def make_paths_absolute(self) -> None:
        downloader: Any = copy.copy(self.downloader)
        if not downloader.streams:
            downloader._download_dir = absolute(downloader._download_dir)
        self.downloader = downloader

    def splitting(self, split: Splitter, block_bytes: int) -> "DocumentDownloadStage":
        """Return a copy that divides the files it has fetched."""
        changed = self.with_()
        changed.__dict__.update(_split=split, _block_bytes=block_bytes)
        return changed  # type: ignore[return-value]  # `with_` copies

    def process(self, task: FileGroupTask) -> FileGroupTask | list[FileGroupTask] | None:
        made = [each for part in task.parts() for each in self._parts(task, part)]
        return made[0] if len(made) == 1 else made or None

    def _parts(self, task: FileGroupTask, part: FileSlice) -> list[FileGroupTask]:
        """The parts of the file of a URL; none if it is lost, which is then on record."""
        url = part.path
        file = RemoteFile(url, part.file_size or None, part.version)
        try:
            status = self.downloader.locate(file) if self.downloader.streams else self._stored(file)
        except DownloadFailed as failed:
            if not failed.is_final:
                raise
            lost = Quarantined(str(failed), DOWNLOAD_FAILED, source=url, num_documents=0, lost_bytes=part.num_bytes)
            self.context.quarantine(lost)
            return []
        # Where its size was not known, what cannot be read of it is judged as a share of the size the plan assumed.
        weight = part.num_bytes / status.size if status.size > 0 and not part.file_size else 1.0
        shown = without_url_secrets(url)
        metadata = {**task._metadata, "source_url": shown, "source_files": [without_url_secrets(status.path)]}
        return [
            FileGroupTask(task.dataset_name, [each.path], _metadata=dict(metadata), slices=(each,))
            for each in parts_of_file(status, self._split, self._block_bytes, weight)
        ]

    def _stored(self, file: RemoteFile) -> FileStatus:
        path = self.downloader.download_file(file)
        if not self.downloader.keeps_files:
            self.context.note_fact(path)
        status = file_system(path).status(path)
        if status is None:
            raise DownloadFailed(f"{file.url}: expected a file at {path}; it is gone")
        return status

    def after_commit(self, facts: Sequence[bytes]) -> None:
        """Remove files once everything made of them is committed, unless they are to be kept."""
        for path in map(json.loads, facts):
            self.downloader.release(path)
