"""The program that is killed while it deduplicates: `python -m tests.fault.deduplicate KIND INPUT OUTPUT`."""

import json
import sys

from gristmill.backends.local import LocalExecutor
from gristmill.deduplication.part_dedup import PartDeduplicationWorkflow
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow
from gristmill.stages.deduplication.semantic import SemanticDeduplicationWorkflow

KINDS = ("exact", "fuzzy", "semantic", "parts")


def workflow(kind, source, output):
    options = {"id_field": "id", "index": f"{output}-index"}
    if kind == "exact":
        return ExactDeduplicationWorkflow(output, source, "jsonl", total_nparts=6, **options)
    if kind == "fuzzy":
        return FuzzyDeduplicationWorkflow(None, output, source, "jsonl", **options)
    if kind == "semantic":
        return SemanticDeduplicationWorkflow(source, output, n_clusters=5, eps=0.01, input_filetype="jsonl")
    return PartDeduplicationWorkflow(output, source)


def run(kind, source, output, *, workers=2):
    return workflow(kind, str(source), str(output)).run(executor=LocalExecutor(num_workers=workers))


if __name__ == "__main__":
    print(json.dumps({key: str(value) for key, value in run(*sys.argv[1:4]).metadata.items()}))
