"""`FuzzyDeduplicationWorkflow`: documents that are nearly the same, in one call, each removal verified.

read, sketch ─▶ candidates by shared bands ─▶ read again, shingle ─▶ exchange by component ─▶ verify
─▶ duplicates.parquet ─▶ read again, write those that stay
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.deduplication.dataset_index import DatasetIndex
from gristmill.deduplication.findings import Findings, remove_found
from gristmill.deduplication.fuzzy_search import Found, FuzzySearch, FuzzySettings
from gristmill.deduplication.job import open_job
from gristmill.deduplication.job_input import DedupInput, given_input
from gristmill.deduplication.keep_policy import KeepPolicy
from gristmill.deduplication.sketches import Shingling
from gristmill.engine.plan import AnyStage, AnyTask
from gristmill.errors import ConfigError, nearest
from gristmill.kernels.dedup.banding import DEFAULT_ROWS, Banding, choose_bands
from gristmill.pipeline.pipeline import Watching
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, errors_of, warn_ignored
from gristmill.runs.user import Observer
from gristmill.storage.file_system import disk_path

SIMILARITIES = ("jaccard", "containment")

log = logging.getLogger(__name__)


@dataclass
class FuzzyDeduplicationWorkflow(WorkflowBase):
    """Remove documents whose shingles are `jaccard_threshold` similar to those of a document that is kept.

    Below `output_path` it writes `deduplicated/` (with `perform_removal`) and `duplicates.parquet`. Bands are chosen so
    that a pair at the threshold is compared with a probability of more than 0.999, unless `num_bands` and
    `minhashes_per_band` are given. Texts of fewer words than a shingle are duplicates of their equals only; documents
    without words are kept. `index` adds this dataset to an index and removes what is in it already; `consult` names
    further ones. The same call continues a run that was killed. With `similarity="containment"` a document goes when
    that share of its shingles is in the one that stays; candidates are still those whose Jaccard similarity is high
    enough for the bands.
    """

    IGNORED: ClassVar[tuple[str, ...]] = (
        "cache_kwargs",
        "use_64_bit_hash",
        "bands_per_iteration",
        "lsh_num_output_partitions",
        "lsh_rmm_pool_size",
        "lsh_spill_memory_limit",
        "env_vars",
        "use_async_memory",
    )

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
    similarity: str = "jaccard"
    keep: str = "longest"
    id_field: str | None = None
    index: str | None = None
    consult: Sequence[str] = field(default_factory=tuple)
    alarm_share: float = 0.5
    fresh: bool = False

    def __post_init__(self) -> None:
        who = type(self).__name__
        self.output_path = str(self.output_path).rstrip("/")
        if not 0 < self.jaccard_threshold <= 1:
            raise ConfigError(f"{who}: expected jaccard_threshold in (0, 1]; got {self.jaccard_threshold!r}")
        if self.similarity not in SIMILARITIES:
            raise ConfigError(
                f"{who}: expected similarity to be one of {SIMILARITIES}; "
                f"got {self.similarity!r}{nearest(self.similarity, SIMILARITIES)}"
            )
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
            self.similarity == "containment",
        )
        warn_ignored(self)

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
        quiet: bool = False,
    ) -> WorkflowRunResult:
        """Find the duplicates, write their list, and unless told otherwise write the documents that stay."""
        executor = executor or default_executor()
        with Watching("fuzzy_deduplication", executor, quiet=quiet, observer=observer) as watching:
            result = self._run(initial_tasks, executor, watching.observer)
            watching.tell(result)
        return result

    def _run(
        self, initial_tasks: Sequence[AnyTask] | None, executor: BaseExecutor, observer: Observer | None
    ) -> WorkflowRunResult:
        started = time.monotonic()
        log.info(self.curve())
        output = disk_path(self.output_path, who="output_path")
        run_dir = disk_path(self.cache_path or f"{output}/.gristmill", who="cache_path") / "fuzzy"
        source = self._source(initial_tasks)
        with open_job(source, self.output_path, run_dir, executor, observer, fresh=self.fresh) as job:
            index = DatasetIndex(self._settings.for_index(), self.index, self.consult, self.output_path)
            found = FuzzySearch(job, self._settings, index.files(run_dir)).run()
            for warning in found.warnings:
                log.warning(warning)
            ledger = run_dir / "sketch-run" / "ledger.jsonl"
            findings = Findings(found.duplicates, self.text_field, ledger, self.alarm_share, found.near_misses)
            result = findings.write(job, "fuzzy_deduplication")
            result.extend_metadata(self._about(found))
            result.add_metadata("identification_time", time.monotonic() - started)
            if self.perform_removal:
                remove_found(job, findings, result, self.write_kwargs)
                index.add(job, self._for_index)
            result.errors = errors_of(job.done)
        result.add_metadata("total_time", time.monotonic() - started)
        return result

    def curve(self) -> str:
        """Return in lines for a person how likely a pair is compared, by its similarity."""
        return self._settings.banding.curve()

    def _about(self, found: Found) -> dict[str, object]:
        banding = self._settings.banding
        return {
            "num_bands": banding.num_bands,
            "minhashes_per_band": banding.rows,
            "largest_bucket": found.largest_bucket,
            "warnings": found.warnings,
        }

    def _for_index(self, source: DedupInput) -> AnyStage:
        return self._settings.sketching(source, for_index=True)

    def _source(self, initial_tasks: Sequence[AnyTask] | None) -> DedupInput:
        who = type(self).__name__
        path = given_input(who, self.input_path, initial_tasks)
        options = self.input_filetype, self.input_blocksize, self.input_file_extensions, self.read_kwargs
        return DedupInput(who, path, *options)
