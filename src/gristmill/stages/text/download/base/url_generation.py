"""`URLGenerator` says which files there are to fetch; `URLGenerationStage` makes each of them a source partition."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gristmill.errors import ConfigError, NoInputError
from gristmill.stages.base import ProcessingStage
from gristmill.stages.io.partitions import FilePartitions
from gristmill.stages.resources import Resources
from gristmill.storage.file_system import FileStatus
from gristmill.storage.paths import FileList
from gristmill.storage.transfer import RemoteFile
from gristmill.tasks import EmptyTask, FileGroupTask, FileSlice

USUAL_BYTES = 1_000_000_000  # taken for a file of unknown size


class URLGenerator(ABC):
    """Subclass it and write `generate_urls`, or `list_files` where sizes or checksums are published too."""

    @abstractmethod
    def generate_urls(self) -> list[str]:
        """Return the URLs of all files. What cannot be listed is an error: a shorter list would be a silent loss."""

    def list_files(self) -> list[RemoteFile]:
        """Return the files with what is known of them. Called in the driver, while the plan is made."""
        urls: object = self.generate_urls()  # from a user's code
        if isinstance(urls, str) or not isinstance(urls, Iterable):
            who = f"{type(self).__name__}.generate_urls"
            raise ConfigError(f"{who}: expected a list of URLs; got {urls!r:.200}")
        return [RemoteFile(url) for url in urls]

    def plan_note(self, files: Sequence[tuple[str, int, str]]) -> str:
        """Return what `gristmill plan` says about the files (URL, size, version) before any of them is fetched."""
        unknown = sum(not size for _, size, _ in files)
        gigabytes = sum(size for _, size, _ in files) / 1e9
        known = "" if unknown == len(files) else f"{gigabytes:,.1f} GB to fetch"
        missing = "" if not unknown else f"{unknown:,} of unknown size"
        return ", ".join(filter(None, [known, missing]))

    def check_ready(self) -> None:
        """Raise MissingDependency or ConfigError if something is missing that listing will need."""


@dataclass(eq=False)
class URLGenerationStage(ProcessingStage[EmptyTask, FileGroupTask]):
    """List the files to fetch, one partition each. `limit` keeps the first; a URL listed twice counts once.

    Listing is part of making the plan: a list that cannot be read is reported before anything is fetched.
    """

    url_generator: URLGenerator
    limit: int | None = None
    resources = Resources(cpus=0.5)

    def __post_init__(self) -> None:
        self.name = f"url_generation_{type(self.url_generator).__name__.lower()}"
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"{self.name}: expected limit ≥ 1 or None; got {self.limit!r}")

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], []

    def check_ready(self) -> None:
        self.url_generator.check_ready()

    def process(self, task: EmptyTask) -> list[FileGroupTask]:
        return list(self.partitions())

    def partitions(self) -> FilePartitions:
        """List the files now, and return one task for each."""
        before: Sequence[tuple[str, int, str]] | None = self.__dict__.get("_listed")
        files = self._list() if before is None else before
        self.__dict__["_note"] = self.url_generator.plan_note(files)
        listed = FileList()
        for url, size, version in files:
            listed.append(url, size, version)
        return FilePartitions(self.name, listed, (((_slice(file),), None) for file in listed), {})

    def _list(self) -> list[tuple[str, int, str]]:
        files: dict[str, RemoteFile] = {}
        for file in self.url_generator.list_files():
            given: object = file.url  # by a user's code
            if not isinstance(given, str) or not given:
                who = type(self.url_generator).__name__
                raise ConfigError(f"{who}: expected URLs, which are texts; got {given!r:.200} among them")
            files.setdefault(file.url, file)
        if not files:
            raise NoInputError(f"{self.name}: expected at least one URL; got none")
        return [(file.url, file.size or 0, file.version) for file in list(files.values())[: self.limit]]

    def plan_note(self) -> str:
        return str(self.__dict__.get("_note", ""))

    def use_listing(self, files: Sequence[tuple[str, int, str]]) -> None:
        """Take the files an earlier session of the run has listed."""
        self.__dict__["_listed"] = files

    def num_workers(self) -> int | None:
        return 1


def _slice(file: FileStatus) -> FileSlice:
    """All of a file. One of unknown size counts as a usual one: what share of the input is lost is judged by that."""
    return FileSlice(
        file.path, file_size=file.size, version=file.version, num_bytes=file.size if file.size > 0 else USUAL_BYTES
    )
