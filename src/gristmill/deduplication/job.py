"""`DedupJob`: one deduplication: what it reads, where it leaves its files, which executor runs its pipelines."""

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.deduplication.documents import RemoveDocuments, TakeDocuments, write_removals
from gristmill.deduplication.job_input import DedupInput
from gristmill.pipeline import Pipeline
from gristmill.runs.books import RunResult
from gristmill.runs.user import Observer
from gristmill.stages.text.io.formats import WRITERS
from gristmill.storage.atomic_write import machine_failures
from gristmill.tasks import DocumentBatch

if TYPE_CHECKING:
    from gristmill.engine.plan import AnyStage, AnyTask


@dataclass(frozen=True)
class Kept:
    """In what form the documents that stay are written: None is as they came."""

    filetype: str | None = None
    file_extension: str | None = None
    fields: tuple[str, ...] | None = None


@dataclass(frozen=True)
class DedupJob:
    """Its pipelines resume from ledgers in the run directory. They share what the executor keeps ready."""

    source: DedupInput
    output_path: str
    run_dir: Path
    executor: BaseExecutor
    observer: Observer | None = None
    done: list[RunResult] = field(default_factory=list)  # what its pipelines have done so far

    @property
    def kept_path(self) -> str:
        """Where the documents that stay are written."""
        return f"{self.output_path}/deduplicated"

    def run(self, name: str, stages: Sequence[object], *, ledger: str) -> RunResult:
        """Run stages as a pipeline that the same call continues."""
        line: list[AnyStage] = list(stages)  # type: ignore[arg-type]  # stages are invariant in their tasks
        result = Pipeline(name, stages=line).run(
            self.executor, checkpoint_path=self.run_dir / ledger, observer=self.observer, quiet=True
        )
        self.done.append(result)
        return result

    def remove(
        self, removed: NDArray[np.uint64], write_kwargs: Mapping[str, object] | None = None, kept: Kept | None = None
    ) -> RunResult:
        """Read the documents again and write all but the removed ones, in files named like the source's."""
        removals = self.run_dir / "removals.npy"
        write_removals(removals, removed)
        form = kept or Kept()
        options: dict[str, object] = {"file_extension": form.file_extension} if form.file_extension else {}
        options |= {"fields": list(form.fields)} if form.fields is not None else {}
        make = WRITERS[form.filetype or self.source.filetype]
        writer = make(self.kept_path, write_kwargs=dict(write_kwargs or {}), **options)  # type: ignore[arg-type]
        stages = [self.source.reader(), RemoveDocuments(self.source.numbers, str(removals)), writer]
        return self.run("remove_duplicates", stages, ledger="remove")

    def texts(self, numbers: Iterable[int], text_field: str) -> dict[int, str]:
        """Return the texts of a few documents; those of an index, or without such a column, are not here."""
        wanted = sorted(set(numbers))
        partitions: list[AnyTask] = list(self.source.partitions_of(wanted))
        if not partitions or not self.source.may_have(text_field):
            return {}
        taking = TakeDocuments(self.source.numbers, wanted, text_field)
        stages: list[AnyStage] = [self.source.reader([text_field]).decompose()[1], taking]
        found: dict[int, str] = {}
        for batch in Pipeline("look_at_documents", stages=stages).run(self.executor, partitions, quiet=True):
            assert isinstance(batch, DocumentBatch)  # noqa: S101  # what the last stage makes
            rows = zip(batch.column("doc").to_pylist(), batch.column("text").to_pylist(), strict=True)
            found |= {number: text or "" for number, text in rows}
        return found


@contextlib.contextmanager
def open_job(
    source: DedupInput,
    output_path: str,
    run_dir: Path,
    executor: BaseExecutor | None,
    observer: Observer | None,
    *,
    fresh: bool = False,
) -> Iterator[DedupJob]:
    """Yield a job whose executor is ready; with `fresh`, what an earlier one left is removed."""
    with machine_failures("deduplication", run_dir), (executor or default_executor()).kept_ready() as ready:
        job = DedupJob(source, output_path, run_dir, ready, observer)
        for path in (run_dir, job.kept_path) if fresh else ():
            shutil.rmtree(path, ignore_errors=True)
        yield job
