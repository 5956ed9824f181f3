"""The program that is killed while it deduplicates: `python -m tests.fault.deduplicate KIND INPUT OUTPUT [ray]`."""

import json
import sys

from tests.deduplication_forms import pipeline
from tests.parity.executors import ray_actor_pool

from gristmill.backends.local import LocalExecutor
from gristmill.deduplication.part_dedup import PartDeduplicationWorkflow
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow
from gristmill.stages.deduplication.semantic import SemanticDeduplicationWorkflow
from gristmill.stages.text.deduplication.semantic import TextSemanticDeduplicationWorkflow
from gristmill.testing.tiny_models import write_tiny_static

KINDS = ("exact", "fuzzy", "semantic", "text-semantic", "parts")
STAGES = ("exact-stage", "fuzzy-stage", "semantic-stage")  # the same in the middle of a pipeline


def workflow(kind, source, output):
    options = {"id_field": "id", "index": f"{output}-index"}
    if kind == "exact":
        return ExactDeduplicationWorkflow(output, source, "jsonl", total_nparts=6, **options)
    if kind == "fuzzy":
        return FuzzyDeduplicationWorkflow(None, output, source, "jsonl", **options)
    if kind == "semantic":
        return SemanticDeduplicationWorkflow(source, output, n_clusters=5, eps=0.01, input_filetype="jsonl")
    if kind == "text-semantic":
        model = str(write_tiny_static(f"{output}-model"))
        options = {"text_field": "words", "input_filetype": "jsonl", "output_filetype": "jsonl", "n_clusters": 5}
        return TextSemanticDeduplicationWorkflow(source, output, model_identifier=model, **options)
    return PartDeduplicationWorkflow(output, source)


def stage(kind, source, output):
    """The pipeline that does what the workflow of this kind does."""
    if kind == "semantic":
        return pipeline(kind, source, output, input_filetype="jsonl", id_field="id", n_clusters=5, eps=0.01)
    options = {"id_field": "id", "index": f"{output}-index"} | ({"num_partitions": 6} if kind == "exact" else {})
    return pipeline(kind, source, output, input_filetype="jsonl", **options)


def run(kind, source, output, where="here", *, workers=2):
    executor = LocalExecutor(num_workers=workers) if where == "here" else ray_actor_pool()
    if kind in STAGES:
        made = stage(kind.removesuffix("-stage"), str(source), str(output))
        return made.run(executor, checkpoint_path=f"{output}/.gristmill/{kind}")
    return workflow(kind, str(source), str(output)).run(executor=executor)


if __name__ == "__main__":
    done = run(*sys.argv[1:5])
    told = done.to_json() if sys.argv[1] in STAGES else done.metadata
    print(json.dumps({key: str(value) for key, value in told.items()}))
