"""`WikipediaDownloader`: dumps, two at a time, as Wikimedia asks of all users."""

from gristmill.stages.text.download.base.transfer_downloader import TransferDownloader

_AT_ONCE = 2  # https://dumps.wikimedia.org asks for no more connections from one address


class WikipediaDownloader(TransferDownloader):
    """Fetches dumps of Wikipedia."""

    def num_workers_per_node(self) -> int | None:
        return _AT_ONCE
