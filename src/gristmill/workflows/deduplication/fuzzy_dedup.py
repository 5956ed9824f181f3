"""`FuzzyDeduplicationWorkflow`: documents that are nearly the same, in one call, each removal verified.

read, sketch ─▶ candidates by shared bands ─▶ read again, shingle ─▶ exchange by component ─▶ verify
─▶ duplicates.parquet ─▶ read again, write those that stay
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.backends.base import BaseExecutor, Observer
from gristmill.engine.plan import AnyStage, AnyTask
from gristmill.errors import ConfigError
from gristmill.kernels.dedup.banding import DEFAULT_ROWS, Banding, choose_bands
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult
from gristmill.stages.deduplication.fuzzy.shingling import Shingling
from gristmill.stages.deduplication.keep_policy import KeepPolicy
from gristmill.workflows.deduplication.dataset_index import DatasetIndex
from gristmill.workflows.deduplication.dedup_input import DedupInput, given_input
from gristmill.workflows.deduplication.findings import write_findings
from gristmill.workflows.deduplication.fuzzy_search import FuzzySearch, FuzzySettings
from gristmill.workflows.deduplication.ignored_options import warn_ignored
from gristmill.workflows.deduplication.removal import remove_documents, start_over

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass
class FuzzyDeduplicationWorkflow(WorkflowBase):
    """Remove documents whose shingles are `jaccard_threshold` similar to those of a document that is kept.

    Below `output_path` it writes `deduplicated/` (with `perform_removal`) and `duplicates.parquet`. Bands are chosen so
    that a pair at the threshold is compared with a probability of more than 0.999, unless `num_bands` and
    `minhashes_per_band` are given. Texts of fewer words than a shingle are duplicates of their equals only; documents
    without words are kept. `index` adds this dataset to an index and removes what is in it already; `consult` names
    further ones. The same call continues a run that was killed.
    """

    cache_path: str | None
    output_path: str
    input_path: str | Sequence[str] | None = None
    input_filetype: str = "parquet"
    input_blocksize: int | str | None = "1GiB"
    input_file_extensions: Sequence[str] | None = None
    read_kwargs: Mapping[str, object] | None = None
    cache_kwargs: Mapping[str, object] | None = None
    write_kwargs: Mapping[str, object] | None = None
    text_field: str = "text"
    perform_removal: bool = True
    seed: int = 42
    char_ngrams: int | None = None
    num_bands: int | None = None
    minhashes_per_band: int | None = None
    use_64_bit_hash: bool = False
    bands_per_iteration: int = 5
    lsh_num_output_partitions: int | None = None
    lsh_rmm_pool_size: object = "auto"
    lsh_spill_memory_limit: object = "auto"
    env_vars: Mapping[str, str] | None = None
    use_async_memory: bool = True
    _: KW_ONLY
    shingle: str = "word:5"
    jaccard_threshold: float = 0.8
    verify: bool = True
    keep: str = "longest"
    id_field: str | None = None
    index: str | None = None
    consult: Sequence[str] = field(default_factory=tuple)
    alarm_share: float = 0.5
    fresh: bool = False
    verbose: bool = True

    def __post_init__(self) -> None:
        who = type(self).__name__
        self.output_path = str(self.output_path).rstrip("/")
        if not 0 < self.jaccard_threshold <= 1:
            raise ConfigError(f"{who}: expected jaccard_threshold in (0, 1]; got {self.jaccard_threshold!r}")
        if self.index is not None and not self.perform_removal:
            raise ConfigError(f"{who}: expected perform_removal with index: it takes in the documents that stay")
        shingle = self.shingle if self.char_ngrams is None else f"char:{self.char_ngrams}"
        keep = KeepPolicy.parse(self.keep, who=who)
        self._settings = FuzzySettings(
            Shingling.parse(shingle, who=who),
            self._banding(),
            self.jaccard_threshold,
            keep,
            self.text_field,
            self.id_field,
            self.seed,
            self.verify,
        )
        defaults: dict[str, object] = {"lsh_rmm_pool_size": "auto", "lsh_spill_memory_limit": "auto", "env_vars": None}
        defaults |= {"use_async_memory": True, "use_64_bit_hash": False, "bands_per_iteration": 5, "cache_kwargs": None}
        warn_ignored(who, self, {**defaults, "lsh_num_output_partitions": None})

    def _banding(self) -> Banding:
        for name in ("num_bands", "minhashes_per_band"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{type(self).__name__}: expected {name} ≥ 1; got {value!r}")
        if self.num_bands is None:
            return choose_bands(self.jaccard_threshold, rows=self.minhashes_per_band or DEFAULT_ROWS)
        return Banding(self.num_bands, self.minhashes_per_band or DEFAULT_ROWS)

    def run(
        self,
        initial_tasks: Sequence[AnyTask] | None = None,
        executor: BaseExecutor | None = None,
        *,
        observer: Observer | None = None,
    ) -> WorkflowRunResult:
        """Find the duplicates, write their list, and unless told otherwise write the documents that stay."""
        started = time.monotonic()
        if self.verbose:
            print(self._settings.banding.curve(), file=sys.stderr)
        source = self._source(initial_tasks)
        run_dir = Path(self.cache_path or f"{self.output_path}/.gristmill") / "fuzzy"
        if self.fresh:
            start_over(run_dir, self.output_path)
        index = DatasetIndex(self._settings.for_index(), self.index, self.consult, self.output_path)
        search = FuzzySearch(source, self._settings, run_dir, index.files(run_dir), executor, observer)
        found = search.run()
        result = WorkflowRunResult("fuzzy_deduplication")
        findings = write_findings(
            source,
            found.duplicates,
            self.output_path,
            text_field=self.text_field,
            ledger_path=run_dir / "sketch-run" / "ledger.jsonl",
            alarm_share=self.alarm_share,
            near_misses=found.near_misses,
        )
        about = {
            "num_bands": self._settings.banding.num_bands,
            "minhashes_per_band": self._settings.banding.rows,
            "largest_bucket": found.largest_bucket,
            "warnings": found.warnings,
            "identification_time": time.monotonic() - started,
        }
        result.extend_metadata({**findings, **about})
        if self.verbose and found.warnings:
            print("\n".join(found.warnings), file=sys.stderr)
        if self.perform_removal:
            self._remove(source, run_dir, found.duplicates.doc, result, executor, observer)
            index.add(f"{self.output_path}/deduplicated", source.filetype, self._for_index, executor)
        result.add_metadata("total_time", time.monotonic() - started)
        return result

    def _remove(
        self,
        source: DedupInput,
        run_dir: Path,
        removed: "NDArray[np.uint64]",
        result: WorkflowRunResult,
        executor: BaseExecutor | None,
        observer: Observer | None,
    ) -> None:
        options = dict(self.write_kwargs or {})
        output = f"{self.output_path}/deduplicated"
        done = remove_documents(
            source, removed, output, run_dir, executor=executor, observer=observer, write_kwargs=options
        )
        result.add_pipeline_tasks("removal", done)
        result.extend_metadata({"num_kept": done.written, "quarantined": done.quarantined})

    def _for_index(self, source: DedupInput) -> AnyStage:
        return self._settings.sketching(source, for_index=True)  # type: ignore[return-value]  # stages are invariant

    def _source(self, initial_tasks: Sequence[AnyTask] | None) -> DedupInput:
        who = type(self).__name__
        path = given_input(who, self.input_path, initial_tasks)
        options = self.input_filetype, self.input_blocksize, self.input_file_extensions, self.read_kwargs
        return DedupInput(who, path, *options)
