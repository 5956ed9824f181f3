"""The last step of every deduplication: read the documents again and write those that stay."""

import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.backends.base import BaseExecutor, Observer
from gristmill.backends.run_result import RunResult
from gristmill.pipeline import Pipeline
from gristmill.stages.deduplication.remove_documents import RemoveDocuments, write_removals
from gristmill.workflows.deduplication.dedup_input import WRITERS, DedupInput


def start_over(run_dir: Path, output_path: str) -> None:
    """Remove what an earlier run left."""
    shutil.rmtree(run_dir, ignore_errors=True)
    shutil.rmtree(f"{output_path}/deduplicated", ignore_errors=True)


def remove_documents(
    source: DedupInput,
    removed: NDArray[np.uint64],
    output: str,
    run_dir: Path,
    *,
    executor: BaseExecutor | None = None,
    observer: Observer | None = None,
    write_kwargs: dict[str, object] | None = None,
) -> RunResult:
    """Write all documents but the removed ones below `output`, in files named like the source's."""
    removals = run_dir / "removals.npy"
    if not removals.exists():
        write_removals(removals, removed)
    writer = WRITERS[source.filetype](output, write_kwargs=write_kwargs or {})
    stages = [source.reader(), RemoveDocuments(source.numbers, str(removals)), writer]
    pipeline = Pipeline("remove_duplicates", stages=stages)  # type: ignore[arg-type]  # stages are invariant
    return pipeline.run(executor, checkpoint_path=run_dir / "remove", observer=observer)
