"""`DatasetIndex`: the documents of earlier datasets, so that a new one is deduplicated against them.

<index>/header.json            how documents were compared; another setting is refused
<index>/<dataset>/rows/*.arrow of each document that stayed: id and what it is compared by
<index>/<dataset>/files.json   the names and checksums of those files, written when all of them are there

Whoever consults an index reads every file of it first, and compares: a file that is missing, cut or has one bit wrong
would let duplicates pass, or remove documents that have none, and nobody would notice.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import xxhash

from gristmill.deduplication.job import DedupJob
from gristmill.deduplication.job_input import DedupInput
from gristmill.errors import ConfigError, ResumeRefused
from gristmill.pipeline import Pipeline
from gristmill.runs.ledger import is_sealed, sealed
from gristmill.stages.text.io.formats import WRITERS
from gristmill.stages.text.io.writer import ArrowWriter
from gristmill.storage.atomic_write import checksum_of, force_file, force_names, write_file
from gristmill.storage.file_system import disk_path

if TYPE_CHECKING:
    from gristmill.engine.plan import AnyStage

FORMAT = 2
LIST = "files.json"


class DatasetIndex:
    """An index to consult and add to, and others to consult only. `settings` must be those they were made with."""

    def __init__(
        self, settings: Mapping[str, object], own: str | None, others: Sequence[str], dataset: str | Path
    ) -> None:
        self.header = {"format": FORMAT, **settings}
        self.own = None if own is None else disk_path(own, who="index")
        self.paths = [*([self.own] if self.own else []), *(disk_path(str(other), who="index") for other in others)]
        # The same call again must not find its own documents.
        self.dataset = xxhash.xxh3_64_hexdigest(str(Path(dataset).resolve()).encode())
        for path in self.paths:
            self._check(path, must_exist=path != self.own)

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
        """The files to consult: those there were when this run began, also when it is continued.

        A run that begins forgets what an earlier one of this dataset has added: its documents may be others now.
        """
        noted = run_dir / "consulted.json"
        if any(run_dir.glob("[!.]*")):
            found = _noted(noted)
            changed = [file for file, checksum in found.items() if not _is_as_written(Path(file), checksum)]
            if changed:
                raise ResumeRefused(
                    f"{changed[0]}: expected the file of an index as it was when this run began; it is gone or has "
                    "changed. Start over with fresh=True (--fresh)"
                )
            return list(found)
        if self.own is not None:
            shutil.rmtree(self.own / self.dataset, ignore_errors=True)
        found = {}
        for path in self.paths:
            for rows in sorted(path.glob("*/rows")):
                if rows.parent.name != self.dataset:
                    found |= _checked(rows)
        write_file(str(noted), [sealed(json.dumps({"files": found})).encode()])
        force_names(str(run_dir), above=True)
        return list(found)

    def add(self, job: DedupJob, reducing: Callable[[DedupInput], "AnyStage"]) -> None:
        """Take in the documents that stay, reduced by the stage `reducing` returns."""
        filetype = job.source.filetype
        if self.own is None or not any(Path(job.kept_path).glob(f"*.{WRITERS[filetype].file_extension}*")):
            return
        source = DedupInput("index", job.kept_path, filetype)
        stage = reducing(source)
        part = self.own / self.dataset
        stages = [source.reader(stage.inputs()[1]), stage, ArrowWriter(str(part / "rows"))]
        line: list[AnyStage] = list(stages)
        pipeline = Pipeline("add_to_index", stages=line)
        try:
            done = pipeline.run(job.executor, checkpoint_path=part / "run", quiet=True)
        except ResumeRefused:  # the documents have been written again since, after the machine had stopped
            done = pipeline.run(job.executor, checkpoint_path=part / "run", fresh=True, quiet=True)
        for file in done.output_files:
            force_file(file)
        force_names(str(part / "rows"), above=True)
        written = {Path(file).name: checksum_of(file) for file in sorted(done.output_files)}
        write_file(str(part / LIST), [sealed(json.dumps({"files": written})).encode()])
        force_names(str(part))
        header = self.own / "header.json"
        if not header.exists():
            write_file(str(header), [json.dumps(self.header, indent=1).encode()])


def _checked(rows: Path) -> dict[str, str]:
    """The files of one dataset in an index with their checksums; ConfigError if they are not what was written."""
    listed = _listed(rows.parent / LIST)
    if listed is None:
        raise ConfigError(
            f"index {rows.parent}: expected a dataset that was added to its end; got one without a whole {LIST}. "
            "Run its deduplication again, or wait for it; or remove this directory"
        )
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


def _listed(path: Path) -> dict[str, str] | None:
    """Files with their checksums, as they were written down; None if they were not, or not to the end."""
    try:
        text = path.read_text()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    if not is_sealed(text):
        return None
    files: dict[str, str] = json.loads(text)["files"]
    return files


def _noted(path: Path) -> dict[str, str]:
    """Return the files `DatasetIndex.files` wrote down: the only record of which files there were then."""
    files = _listed(path)
    if not isinstance(files, dict):
        raise ResumeRefused(
            f"{path}: expected the files of indexes that this run consults; it is missing or damaged. "
            "Start over with fresh=True (--fresh)"
        )
    return files
