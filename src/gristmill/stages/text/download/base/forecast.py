"""`forecast`: how much a plan would fetch, found out without fetching any of it.

Sizes come from the list where they are published. Else servers are asked for them (`HEAD`): for all files if there are
few, and for some spread over all if there are many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gristmill.errors import DownloadFailed
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.download.base.download import DocumentDownloadStage
from gristmill.stages.text.download.base.transfer_downloader import TransferDownloader
from gristmill.storage.transfer import RemoteFile

MOST_ASKED = 100

Listed = tuple[str, int, str]


@dataclass(frozen=True)
class Forecast:
    """What would be fetched: `num_bytes` of all files together, of which `num_there` are there already.

    Servers were asked for the sizes of `num_asked` files; if those are not all, the sum is an estimate. It is None
    where no server says.
    """

    num_files: int
    num_bytes: int | None
    num_asked: int = 0
    num_there: int = 0
    streams: bool = False
    first: str = ""
    last: str = ""

    @property
    def is_exact(self) -> bool:
        return self.num_asked in (0, self.num_files)

    def __str__(self) -> str:
        files = f"{self.num_files:,} file{'s' * (self.num_files != 1)}"
        size = "of unknown size"
        if self.num_bytes is not None:
            about = "" if self.is_exact else "about "
            size = f"of {about}{self.num_bytes / 1e9:,.3f} GB ({self.num_bytes:,} bytes"
            size += ")" if self.is_exact else f", by the sizes of {self.num_asked:,})"
        where = ", read where they are" if self.streams else f", {self.num_there:,} of them there already"
        lines = [f"to fetch: {files} {size}{where}", f"  first: {self.first}"]
        return "\n".join([*lines, *([f"  last: {self.last}"] if self.num_files > 1 else [])])


def forecast(stages: Sequence[ProcessingStage], inputs: Sequence[Listed]) -> Forecast | None:  # type: ignore[type-arg]
    """Return what these stages would fetch of the listed files; None if they fetch nothing."""
    download = next((stage for stage in stages if isinstance(stage, DocumentDownloadStage)), None)
    if download is None or not len(inputs):
        return None
    asked, num_bytes = _sizes(download, inputs)
    return Forecast(
        num_files=len(inputs),
        num_bytes=num_bytes,
        num_asked=asked,
        num_there=_there(download, inputs),
        streams=download.downloader.streams,
        first=inputs[0][0],
        last=inputs[-1][0],
    )


def _sizes(download: DocumentDownloadStage, inputs: Sequence[Listed]) -> tuple[int, int | None]:
    known = [size for _, size, _ in inputs if size]
    if len(known) == len(inputs):
        return 0, sum(known)
    downloader = download.downloader
    if not isinstance(downloader, TransferDownloader):
        return 0, None
    step = -(-len(inputs) // MOST_ASKED)
    sizes = []
    for url, size, version in inputs[::step]:
        try:
            sizes.append(downloader.locate(RemoteFile(url, size or None, version)).size)
        except DownloadFailed:
            continue  # the run will say so, file by file
    if not sizes:
        return 0, None
    return len(sizes), round(sum(sizes) / len(sizes) * len(inputs))


def _there(download: DocumentDownloadStage, inputs: Sequence[Listed]) -> int:
    downloader = download.downloader
    directory = Path(downloader._download_dir)
    if downloader.streams or not directory.is_dir():
        return 0
    found = 0
    for url, _, _ in inputs:
        try:
            found += downloader._note(url).is_complete()
        except DownloadFailed:  # a file of another URL has its name
            continue
    return found
