"""Deduplication in both forms: a workflow, and a stage in the middle of a pipeline, with the same options.

As a stage it has stages ahead of it and behind it, so that its documents go through the run directory.
"""

from types import SimpleNamespace

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication import ExactDeduplication, FuzzyDeduplication, SemanticDeduplication
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow
from gristmill.stages.deduplication.semantic import SemanticDeduplicationWorkflow
from gristmill.stages.text.io.formats import READERS, WRITERS
from gristmill.tasks import DocumentBatch

FORMS = ("workflow", "stage")
STAGES = {"exact": ExactDeduplication, "fuzzy": FuzzyDeduplication, "semantic": SemanticDeduplication}
DEFAULTS = {
    "exact": {"input_filetype": "jsonl", "id_field": "id"},
    "fuzzy": {"input_filetype": "jsonl", "id_field": "id"},
    "semantic": {"input_filetype": "parquet", "id_field": "id"},
}
RENAMED = {"total_nparts": "num_partitions"}


class Passes(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Does nothing, and nobody knows that: what comes out of it has to be put down to be had again."""

    name = "passes"
    adds_only_declared_columns = True

    def process(self, task):
        return task


def deduplicate(form, kind, source, out, *, executor=None, **options):
    """Deduplicate files into `out/deduplicated`; return something with `metadata`, as workflows do."""
    executor = executor or LocalExecutor(num_workers=0)
    options = {**DEFAULTS[kind], **options}
    paths = [str(path) for path in source] if isinstance(source, list) else str(source)
    if form == "workflow":
        return _workflow(kind, paths, str(out), options).run(executor=executor)
    return _stage(kind, paths, str(out), executor, options)


def _workflow(kind, paths, out, options):
    if kind == "exact":
        return ExactDeduplicationWorkflow(out, paths, **options)
    if kind == "fuzzy":
        return FuzzyDeduplicationWorkflow(None, out, paths, **options)
    return SemanticDeduplicationWorkflow(paths, out, **options)


def pipeline(kind, paths, out, *, input_filetype, input_blocksize=None, **options):
    """The pipeline that does what a workflow does with the same options."""
    options = {RENAMED.get(name, name): value for name, value in options.items()}
    stage = STAGES[kind](**options, report_path=out)
    reader = READERS[input_filetype](paths, blocksize=input_blocksize)
    writer = WRITERS[input_filetype](f"{out}/deduplicated")
    ahead, behind = Passes(), Passes().with_(name="passes_too")
    return Pipeline("deduplicate", stages=[reader, ahead, stage, behind, writer])


def _stage(kind, paths, out, executor, options):
    fresh = options.pop("fresh", False)
    result = pipeline(kind, paths, out, **options).run(
        executor, checkpoint_path=f"{out}/.gristmill/{kind}", fresh=fresh, quiet=True
    )
    assert result.balanced
    found = result.found[f"{kind}_deduplication"]
    assert result.dropped_total == found["num_duplicates"]
    assert set(result.dropped.get(f"{kind}_deduplication", {})) <= {f"{kind}_duplicate"}
    return SimpleNamespace(metadata={**found, "num_kept": result.written}, errors=result.errors, result=result)
