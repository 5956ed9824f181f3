"""`TransferDownloader`: a downloader of files on web servers and S3, for sources that need nothing else."""

import logging
from pathlib import Path
from urllib.parse import urlsplit

from gristmill.errors import ConfigError, DownloadFailed
from gristmill.stages.text.download.base.download import DocumentDownloader
from gristmill.storage import http
from gristmill.storage.download_notes import Note
from gristmill.storage.file_system import FileStatus, disk_path
from gristmill.storage.s3_requests import SCHEME, check_keys
from gristmill.storage.transfer import RemoteFile, TransferOptions, budget_of, fetch_file, locate

_NO_MORE = TransferOptions()
log = logging.getLogger(__name__)


class TransferDownloader(DocumentDownloader):
    """Fetches over HTTP or from S3: resumes after a break, verifies, and keeps to a rate and a budget.

    A subclass says in `_get_output_filename` what a file is called, and may map a URL in `_place_of`. Without a
    `download_dir` nothing is stored: files are read in ranges, where they are.
    """

    requester_pays: bool = False

    def __init__(
        self,
        download_dir: str | None,
        verbose: bool = False,  # noqa: FBT001, FBT002  # as users know it
        *,
        transfer: TransferOptions = _NO_MORE,
    ) -> None:
        super().__init__(download_dir or "", verbose)
        self._streams = download_dir is None
        self.transfer = transfer

    def _get_output_filename(self, url: str) -> str:
        return urlsplit(url).path.lstrip("/").replace("/", "-")

    def _place_of(self, url: str) -> str:
        """Where the file of a URL is fetched."""
        return url

    def _download_to_path(self, url: str, path: str) -> tuple[bool, str | None]:
        try:
            self._fetch(RemoteFile(url), Note(Path(path), url))
        except DownloadFailed as failed:
            return False, str(failed)
        return True, None

    def download(self, url: str) -> str:
        return self.download_file(RemoteFile(url))

    def download_file(self, file: RemoteFile) -> str:
        return self._fetch(file, self._note(file.url))

    def _fetch(self, file: RemoteFile, note: Note) -> str:
        place = RemoteFile(self._place_of(file.url), file.size, file.version)
        budget = budget_of(self.transfer, disk_path(self._download_dir, who=type(self).__name__))
        pays = self.requester_pays
        return fetch_file(place, note, self.transfer, budget=budget, requester_pays=pays, waiting=log.warning)

    @property
    def streams(self) -> bool:
        return self._streams

    def locate(self, file: RemoteFile) -> FileStatus:
        place = RemoteFile(self._place_of(file.url), file.size, file.version)
        return locate(place, self.transfer, requester_pays=self.requester_pays)

    @property
    def downloads_at_once(self) -> int:
        return self.num_workers_per_node() or self.transfer.max_connections

    @property
    def keeps_files(self) -> bool:
        return self.transfer.keep_files

    def check_ready(self) -> None:
        http.check_ready()
        if self._place_of("https://example.org/x").startswith(SCHEME):
            check_keys()
        for prefix, to in self.transfer.mirrors:
            if not to.startswith(("http://", "https://", SCHEME)):
                raise ConfigError(f"{type(self).__name__}: expected a mirror of {prefix!r} to be a URL; got {to!r}")
