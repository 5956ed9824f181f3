"""`DatasetIndex`: the documents of earlier datasets, so that a new one is deduplicated against them.

<index>/header.json            how documents were compared; another setting is refused
<index>/<dataset>/rows/*.arrow of each document that stayed: id and what it is compared by
<index>/<dataset>/files.json   the names and checksums of those files, written when all of them are there

Before an index is consulted, all its files are read and checked against their checksums: a file that is missing, cut
or has one bit wrong would let duplicates pass, or remove documents that have none, without anyone noticing.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from gristmill.errors import ConfigError, ResumeRefused
from gristmill.runs.ledger import is_sealed, sealed
from gristmill.storage.atomic_write import checksum_of, force_file, force_names, write_file
from gristmill.storage.file_system import disk_path

if TYPE_CHECKING:
    from gristmill.runs.searches import Search
    from gristmill.stages.base import AnyStage

FORMAT = 2
LIST = "files.json"
CONSULTED = "consulted.json"  # in the directory of a search: which files there were when it began


class DatasetIndex:
    """An index to consult and add to, and others to consult only. `settings` must be those they were made with."""

    def __init__(
        self, settings: Mapping[str, object], own: str | None, others: Sequence[str], dataset: str | Path
    ) -> None:
        self.header = {"format": FORMAT, **settings}
        self.own = None if own is None else disk_path(own, who="index")
        self.paths = [*([self.own] if self.own else []), *(disk_path(str(other), who="index") for other in others)]
        # The same call made again must not find its own documents.
        self.dataset = xxhash.xxh3_64_hexdigest(str(Path(dataset).resolve()).encode())
        for path in self.paths:
            self._check(path, must_exist=path != self.own)

    @classmethod
    def of_search(
        cls,
        search: "Search",
        settings: Mapping[str, object],
        own: str | None,
        others: Sequence[str],
        dataset: str | None,
    ) -> "DatasetIndex":
        """Return the index for the documents of a search, which are known by `dataset`, or by where their run is."""
        if own is not None and search.is_temporary:
            raise ConfigError(
                f"{search.stage}: expected a pipeline that ends in a writer, or a checkpoint_path, with index: without "
                "one, the documents of this run could not be told from others the next time"
            )
        return cls(settings, own, others, dataset or search.run_dir)

    def _check(self, path: Path, *, must_exist: bool) -> None:
        try:
            header = json.loads((path / "header.json").read_text())
        except FileNotFoundError:
            if must_exist:
                raise ConfigError(f"index {path}: expected an index (with header.json in it); there is none") from None
            return
        expected = self.header
        if header.get("format") != FORMAT:
            raise ConfigError(
                f"index {path}: expected an index of format {FORMAT}; got format {header.get('format')!r}, of another "
                "version. Make it again"
            )
        different = [key for key in expected if header.get(key) != expected[key]]
        if different:
            then = ", ".join(f"{key} {header.get(key)!r}" for key in different)
            now = ", ".join(f"{key} {expected[key]!r}" for key in different)
            raise ConfigError(f"index {path}: expected the settings it was made with, {then}; got {now}")

    def files(self, run_dir: Path) -> list[str]:
        """The files to consult: those that existed when this run began, even if it is being continued.

        A run that begins removes what an earlier one of this dataset added: the documents may be different now.
        """
        noted = run_dir / CONSULTED
        if any(run_dir.glob("[!.]*")):
            found, indexes = _noted(noted)
            self._refuse_others(indexes)
            changed = [file for file, checksum in found.items() if not _is_as_written(Path(file), checksum)]
            if changed:
                raise ResumeRefused(
                    f"{changed[0]}: expected the file of an index as it was when this run began; it is gone or has "
                    "changed. Start over with fresh=True (--fresh)"
                )
            return list(found)
        if self.own is not None:
            shutil.rmtree(self.own / self.dataset, ignore_errors=True)
        found = {
            file: checksum
            for path in self.paths
            for rows in self._others_in(path)
            for file, checksum in _checked(rows).items()
        }
        noting = {"files": found, "indexes": [str(path) for path in self.paths]}
        write_file(str(noted), [sealed(json.dumps(noting)).encode()])
        force_names(str(run_dir), above=True)
        return list(found)

    def _others_in(self, path: Path) -> list[Path]:
        """The datasets in an index, except this one."""
        return [rows for rows in sorted(path.glob("*/rows")) if rows.parent.name != self.dataset]

    def _refuse_others(self, noted: Sequence[str]) -> None:
        """Refuse to go on with an index that was not named when the run began: it would not be consulted."""
        for path in self.paths:
            if str(path) not in noted and self._others_in(path):
                raise ResumeRefused(
                    f"index {path}: expected the indexes this run began with, {list(noted)}; this one is new. "
                    "Start over with fresh=True (--fresh)"
                )

    def add(self, search: "Search", stages: Sequence["AnyStage"]) -> None:
        """Add the documents that stay, as these stages read and reduce them."""
        from gristmill.stages.text.io.writer import ArrowWriter

        if self.own is None:
            return
        part = self.own / self.dataset
        files = search.write_elsewhere("add_to_index", [*stages, ArrowWriter(str(part / "rows"))], part / "run")
        for file in files:
            force_file(file)
        force_names(str(part / "rows"), above=True)
        written = {Path(file).name: checksum_of(file) for file in sorted(files)}
        write_file(str(part / LIST), [sealed(json.dumps({"files": written})).encode()])
        force_names(str(part))
        header = self.own / "header.json"
        if not header.exists():
            write_file(str(header), [json.dumps(self.header, indent=1).encode()])


def _checked(rows: Path) -> dict[str, str]:
    """The files of one dataset in an index with their checksums; ConfigError if they are not what was written."""
    said = _said(rows.parent / LIST)
    if said is None:
        raise ConfigError(
            f"index {rows.parent}: expected a dataset that was added completely; got one without a complete {LIST}. "
            "Run its deduplication again, or wait for it; or remove this directory"
        )
    listed: dict[str, str] = said["files"]
    found = {str(rows / name): checksum for name, checksum in listed.items()}
    for file, checksum in found.items():
        if not _is_as_written(Path(file), checksum):
            raise ConfigError(
                f"index {file}: expected the file as it was written; it is gone or damaged. Run the deduplication that "
                "added it again, with fresh=True (--fresh); or restore the file"
            )
    return found


def _is_as_written(file: Path, checksum: str) -> bool:
    try:
        return checksum_of(str(file)) == checksum
    except OSError:
        return False


def _said(path: Path) -> dict[str, Any] | None:
    """What a file says; None if it is missing or was not written to its end."""
    try:
        text = path.read_text()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    if not is_sealed(text):
        return None
    said: dict[str, Any] = json.loads(text)
    return said


def _noted(path: Path) -> tuple[dict[str, str], list[str]]:
    """Return the files `DatasetIndex.files` noted, the only record of which existed then, and their indexes."""
    said = _said(path)
    if said is None:
        raise ResumeRefused(
            f"{path}: expected the files of indexes that this run consults; it is missing or damaged. "
            "Start over with fresh=True (--fresh)"
        )
    return said["files"], said["indexes"]
