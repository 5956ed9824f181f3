"""Which files a crawl has: the lists Common Crawl publishes, and what to say where there is none.

    https://index.commoncrawl.org/collinfo.json                            all crawls, the newest first
    https://data.commoncrawl.org/crawl-data/CC-MAIN-2025-21/warc.paths.gz  a path a line, or wet.paths.gz
    https://data.commoncrawl.org/crawl-data/CC-NEWS/2025/05/warc.paths.gz

A list that cannot be read stops the plan. Going on without it would lose a crawl in silence.
"""

import datetime
import json
import re
import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

from gristmill.errors import ConfigError, nearest
from gristmill.stages.text.download.base import URLGenerator
from gristmill.storage import http
from gristmill.storage.transfer import TransferOptions, fetch_text

Kind = Literal["warc", "wet"]
FIRST_MAIN = datetime.date(2013, 1, 1)  # before that a crawl is in ARC files
FIRST_NEWS = datetime.date(2016, 8, 1)
_CRAWL = re.compile(r"CC-MAIN-(\d{4})-(\d{2})$")
_SHOWN = 3  # crawls named in a message


@dataclass
class _CommonCrawlUrlGenerator(URLGenerator):
    """What both kinds of crawls have in common: a range of snapshots, and lists of paths."""

    start_snapshot_str: str
    end_snapshot_str: str
    data_prefix: str = "https://data.commoncrawl.org"
    limit: int | None = None
    _: KW_ONLY
    kind: Kind = "warc"
    transfer: TransferOptions = field(default_factory=TransferOptions)

    def __post_init__(self) -> None:
        self._dates()
        if self.kind not in ("warc", "wet"):
            close = nearest(str(self.kind), ("warc", "wet"))
            raise ConfigError(f"{self._who}: expected kind to be 'warc' or 'wet'; got {self.kind!r}{close}")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"{self._who}: expected limit ≥ 1 or None; got {self.limit!r}")

    @property
    def _who(self) -> str:
        return type(self).__name__

    def generate_path_urls(self) -> list[str]:
        """Return the URLs of the lists of paths, the newest first."""
        raise NotImplementedError

    def generate_urls(self) -> list[str]:
        return self.generate_data_urls()

    def generate_data_urls(self, path_urls: str | list[str] | None = None) -> list[str]:
        """Return the URLs of all files on these lists; on those of the snapshots if none are given."""
        lists = self.generate_path_urls() if path_urls is None else path_urls
        found: list[str] = []
        for url in [lists] if isinstance(lists, str) else lists:
            text = fetch_text(url, self.transfer, who=self._who)
            paths = [line.strip() for line in self._decoded(text, url).splitlines() if line.strip()]
            if not paths:
                raise ConfigError(f"{self._who}: expected paths in {url}; got an empty list")
            found += [f"{self.data_prefix.rstrip('/')}/{path.lstrip('/')}" for path in paths]
            if self.limit is not None and len(found) >= self.limit:
                return found[: self.limit]
        return found

    def check_ready(self) -> None:
        http.check_ready()

    def _decoded(self, text: bytes, url: str) -> str:
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"{self._who}: expected a list of paths at {url}; got {error}") from error

    def _dates(self) -> tuple[datetime.date, datetime.date]:
        start, end = self._first_day(self.start_snapshot_str), self._last_day(self.end_snapshot_str)
        if start > end:
            given = f"{self.start_snapshot_str!r} to {self.end_snapshot_str!r}"
            raise ConfigError(f"{self._who}: expected a start that is not after the end; got {given}")
        return start, end

    def _first_day(self, snapshot: str) -> datetime.date:
        raise NotImplementedError

    def _last_day(self, snapshot: str) -> datetime.date:
        return self._first_day(snapshot)

    def _begin_at(self, start: datetime.date, first: datetime.date, why: str) -> datetime.date:
        if start < first:
            warnings.warn(f"{self._who}: {self.start_snapshot_str} is before {first}; {why}", UserWarning, stacklevel=2)
        return max(start, first)


@dataclass
class MainCommonCrawlUrlGenerator(_CommonCrawlUrlGenerator):
    """The files of the main crawls from one snapshot to another, both included: "2025-18" is a year and an ISO week."""

    index_prefix: str = field(default="https://index.commoncrawl.org", kw_only=False)

    def _first_day(self, snapshot: str) -> datetime.date:
        try:
            year, week = map(int, snapshot.split("-"))
            return datetime.date.fromisocalendar(year, week, 1)
        except (ValueError, AttributeError):
            expected = "a snapshot as year and week, such as '2025-18'"
            raise ConfigError(f"{self._who}: expected {expected}; got {snapshot!r}") from None

    def generate_path_urls(self) -> list[str]:
        start, end = self._dates()
        start = self._begin_at(start, FIRST_MAIN, "earlier crawls are in ARC files, and are left out")
        crawls = self._crawls()
        chosen = [name for name, day in crawls.items() if start <= day <= end]
        if not chosen:
            raise ConfigError(
                f"{self._who}: expected a crawl from {self.start_snapshot_str} to {self.end_snapshot_str}; there is "
                f"none. The nearest are {', '.join(self._nearest(crawls, start, end))}"
            )
        return [f"{self.data_prefix.rstrip('/')}/crawl-data/{name}/{self.kind}.paths.gz" for name in chosen]

    def _crawls(self) -> dict[str, datetime.date]:
        """All crawls with their first days, as their list has them."""
        url = f"{self.index_prefix.rstrip('/')}/collinfo.json"
        text = fetch_text(url, self.transfer, who=self._who)
        try:
            names = [str(entry["id"]) for entry in json.loads(text)]
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"{self._who}: expected the list of crawls at {url}; got {error!r}") from error
        found = {name: match for name in names if (match := _CRAWL.match(name)) is not None}
        return {name: datetime.date.fromisocalendar(int(m[1]), int(m[2]), 1) for name, m in found.items()}

    @staticmethod
    def _nearest(crawls: dict[str, datetime.date], start: datetime.date, end: datetime.date) -> list[str]:
        def distance(name: str) -> int:
            day = crawls[name]
            return (start - day).days if day < start else (day - end).days

        return sorted(sorted(crawls, key=distance)[:_SHOWN])


@dataclass
class NewsCommonCrawlUrlGenerator(_CommonCrawlUrlGenerator):
    """The files of the news crawl from one month to another, both included: "2025-05" is a year and a month."""

    def _first_day(self, snapshot: str) -> datetime.date:
        try:
            year, month = map(int, snapshot.split("-"))
            return datetime.date(year, month, 1)
        except (ValueError, AttributeError):
            expected = "a snapshot as year and month, such as '2025-05'"
            raise ConfigError(f"{self._who}: expected {expected}; got {snapshot!r}") from None

    def generate_path_urls(self) -> list[str]:
        if self.kind != "warc":
            raise ConfigError(f"{self._who}: expected kind 'warc', since news has no other files; got {self.kind!r}")
        start, end = self._dates()
        month = self._begin_at(start, FIRST_NEWS, "there is no earlier news, and the list begins there")
        end = min(end, datetime.datetime.now(tz=datetime.UTC).date())
        lists: list[str] = []
        while month <= end:
            lists.append(f"{self.data_prefix.rstrip('/')}/crawl-data/CC-NEWS/{month:%Y/%m}/warc.paths.gz")
            month = (month + datetime.timedelta(days=32)).replace(day=1)
        if not lists:
            given = f"{self.start_snapshot_str!r} to {self.end_snapshot_str!r}"
            raise ConfigError(f"{self._who}: expected months from 2016-08 to now; got {given}")
        return lists[::-1]
