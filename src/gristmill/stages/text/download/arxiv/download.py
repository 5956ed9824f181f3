"""`ArxivDownloader`: archives of arXiv's bucket, paid for by the requester."""

from gristmill.stages.text.download.base.transfer_downloader import TransferDownloader
from gristmill.storage.s3_requests import check_keys
from gristmill.storage.transfer import TransferOptions

_AT_ONCE = 2
_PLAIN = TransferOptions()


class ArxivDownloader(TransferDownloader):
    """Fetches archives of papers."""

    def __init__(
        self,
        download_dir: str,
        verbose: bool = False,  # noqa: FBT001, FBT002  # as users know it
        *,
        requester_pays: bool = False,
        transfer: TransferOptions = _PLAIN,
    ) -> None:
        super().__init__(download_dir, verbose, transfer=transfer)
        self.requester_pays = requester_pays

    def _get_output_filename(self, url: str) -> str:
        return url.rpartition("/")[2]

    def num_workers_per_node(self) -> int:
        return _AT_ONCE

    def check_ready(self) -> None:
        super().check_ready()
        check_keys()
