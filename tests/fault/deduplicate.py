"""The program that is killed while it deduplicates: `python -m tests.fault.deduplicate KIND INPUT OUTPUT`."""

import json
import sys

from gristmill.backends.local import LocalExecutor
from gristmill.deduplication.part_dedup import PartDeduplicationWorkflow
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow
from gristmill.stages.deduplication.semantic import SemanticDeduplicationWorkflow
from gristmill.stages.text.deduplication.semantic import TextSemanticDeduplicationWorkflow
from gristmill.testing.tiny_models import write_tiny_static

KINDS = ("exact", "fuzzy", "semantic", "text-semantic", "parts")


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


def run(kind, source, output, *, workers=2):
    return workflow(kind, str(source), str(output)).run(executor=LocalExecutor(num_workers=workers))


if __name__ == "__main__":
    print(json.dumps({key: str(value) for key, value in run(*sys.argv[1:4]).metadata.items()}))
