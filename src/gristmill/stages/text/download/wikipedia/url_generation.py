"""`WikipediaUrlGenerator`: which files a dump has, with their sizes and checksums, once it is finished."""

import re
from typing import Any

import msgspec

from gristmill.errors import ConfigError
from gristmill.stages.text.download.base import URLGenerator
from gristmill.stages.text.download.wikipedia.site_names import check_language, database
from gristmill.storage import http
from gristmill.storage.transfer import RemoteFile, TransferOptions, fetch_text

JOB = "articlesmultistreamdump"
_DONE = "done"
_DATE = re.compile(r"^\d{8}$")
_LINKED_DATE = re.compile(rb'href="(?:[^"]*/)?(\d{8})/"')
_PLAIN = TransferOptions()


class WikipediaUrlGenerator(URLGenerator):
    """Lists the files of a dump. Without `dump_date` that is the newest one that is finished.

    A dump that is not finished, and a language without a Wikipedia, are errors before anything is fetched.
    """

    def __init__(
        self,
        language: str = "en",
        dump_date: str | None = None,
        wikidumps_index_prefix: str = "https://dumps.wikimedia.org",
        *,
        transfer: TransferOptions = _PLAIN,
    ) -> None:
        check_language(language, who="WikipediaUrlGenerator")
        date = None if dump_date is None else dump_date.rstrip("/")
        if date is not None and not _DATE.match(date):
            raise ConfigError(f"WikipediaUrlGenerator: expected dump_date as YYYYMMDD; got {dump_date!r}")
        self.language = language
        self.dump_date = date
        self.wikidumps_index_prefix = wikidumps_index_prefix
        self.transfer = transfer

    def check_ready(self) -> None:
        http.check_ready()

    def generate_urls(self) -> list[str]:
        return [file.url for file in self.list_files()]

    def list_files(self) -> list[RemoteFile]:
        if self.dump_date is not None:
            return self._files(self.dump_date, self._status(self.dump_date))
        dates = self.dates()
        unfinished = []
        for date in sorted(dates, reverse=True):
            job = self._status(date)
            if job.get("status") == _DONE:
                return self._files(date, job)
            unfinished.append(f"{date} is {job.get('status', 'without articles')}")
        said = ", ".join(unfinished) or "none"
        raise ConfigError(f"{self._who}: expected a finished dump at {self._site}; got {said}")

    def dates(self) -> list[str]:
        """The dates of all dumps there are, finished or not."""
        page = fetch_text(f"{self._site}/", self.transfer, who=self._who)
        return sorted({found.decode() for found in _LINKED_DATE.findall(page)})

    @property
    def _who(self) -> str:
        return f"Wikipedia {self.language!r}"

    @property
    def _site(self) -> str:
        return f"{self.wikidumps_index_prefix.rstrip('/')}/{database(self.language)}"

    def _status(self, date: str) -> dict[str, Any]:
        """What the server says about the job that writes articles."""
        url = f"{self._site}/{date}/dumpstatus.json"
        try:
            content = fetch_text(url, self.transfer, who=self._who)
        except ConfigError as error:
            if self.dump_date is None or "status 404" not in str(error):
                raise
            there = ", ".join(self.dates()) or "none"
            raise ConfigError(f"{self._who}: expected a dump of {date}; there are dumps of {there}") from error
        try:
            return msgspec.convert(msgspec.json.decode(content)["jobs"].get(JOB, {}), dict[str, Any])
        except (msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{self._who}: expected the state of a dump at {url}; got {error}") from error

    def _files(self, date: str, job: dict[str, Any]) -> list[RemoteFile]:
        if job.get("status") != _DONE:
            state = job.get("status", "none of articles")
            raise ConfigError(
                f"{self._who}: expected a finished dump; that of {date} is {state!r}. Name an earlier one"
            )
        files = job.get("files") or {}
        found = [self._file(date, name, about) for name, about in files.items() if ".xml" in name]
        if not found:
            raise ConfigError(f"{self._who}: expected files with .xml in the dump of {date}; got {sorted(files)[:3]}")
        return found

    def _file(self, date: str, name: str, about: Any) -> RemoteFile:
        told = about if isinstance(about, dict) else {}
        checksum = f"sha1:{told['sha1']}" if told.get("sha1") else f"md5:{told['md5']}" if told.get("md5") else ""
        size = told.get("size")
        return RemoteFile(f"{self._site}/{date}/{name}", size if isinstance(size, int) else None, checksum)
