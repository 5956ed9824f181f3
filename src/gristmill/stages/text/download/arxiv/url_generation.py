"""`ArxivUrlGenerator`: the archives of papers in arXiv's bucket, and what fetching them costs.

The bucket bills whoever asks. So nothing is asked for, not even the list, before the user has agreed to pay.
"""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from gristmill.errors import ConfigError
from gristmill.stages.text.download.base import URLGenerator
from gristmill.storage import http
from gristmill.storage.s3_requests import check_keys
from gristmill.storage.transfer import RemoteFile, TransferOptions, fetch_text

BUCKET = "s3://arxiv/"
MANIFEST = f"{BUCKET}src/arXiv_src_manifest.xml"
PRICE_PER_GB = 0.09  # dollars, out of Amazon's region us-east-1 to the internet; within the region it is nothing
ARCHIVE_GB = 0.5  # an archive, about
_PLAIN = TransferOptions()


class ArxivUrlGenerator(URLGenerator):
    """Lists the archives of arXiv's papers, with the sizes and checksums of its manifest, oldest first."""

    def __init__(
        self, *, requester_pays: bool = False, limit: int | None = None, transfer: TransferOptions = _PLAIN
    ) -> None:
        self.requester_pays = requester_pays
        self.limit = limit
        self.transfer = transfer

    def check_ready(self) -> None:
        self._check_paid()
        http.check_ready()
        check_keys()

    def generate_urls(self) -> list[str]:
        return [file.url for file in self.list_files()]

    def list_files(self) -> list[RemoteFile]:
        self._check_paid()
        content = fetch_text(MANIFEST, self.transfer, who="arXiv", requester_pays=True)
        files = parse_manifest(content)
        if not files:
            raise ConfigError(f"arXiv: expected archives in {MANIFEST}; got none")
        return files

    def plan_note(self, files: Sequence[tuple[str, int, str]]) -> str:
        """What fetching these files costs."""
        return f"{price(sum(size for _, size, _ in files) / 1e9)} outside of us-east-1"

    def _check_paid(self) -> None:
        if self.requester_pays:
            return
        if self.limit is None:
            wanted = f"All of it is several terabytes; each is {price(1000)}"
        else:
            wanted = f"url_limit={self.limit} is about {price(self.limit * ARCHIVE_GB)}"
        why = f"its bucket bills whoever asks (${PRICE_PER_GB} a gigabyte, nothing from within Amazon's us-east-1)"
        raise ConfigError(
            f"arXiv: expected requester_pays=True, because {why}; got False, so nothing was fetched. {wanted}"
        )


def price(gigabytes: float) -> str:
    """Return an amount of data and what it costs.

    >>> price(1000)
    '1,000.0 GB, $90.00'
    """
    return f"{gigabytes:,.1f} GB, ${gigabytes * PRICE_PER_GB:,.2f}"


def parse_manifest(content: bytes) -> list[RemoteFile]:
    """Return the archives a manifest names; raise ConfigError if it is not one."""
    try:
        manifest = ET.fromstring(content)  # noqa: S314  # expat limits entities; it is arXiv's own file
    except ET.ParseError as error:
        raise ConfigError(f"arXiv: expected the manifest in XML at {MANIFEST}; got {error}") from error
    files = []
    for file in manifest.iter("file"):
        name, size, md5 = file.findtext("filename"), file.findtext("size"), file.findtext("md5sum")
        if name and name.endswith(".tar"):
            known = int(size) if size and size.strip().isdecimal() else None
            files.append(RemoteFile(BUCKET + name.strip(), known, f"md5:{md5.strip()}" if md5 else ""))
    return sorted(files, key=lambda file: file.url)
