"""The program that is killed while it deduplicates: `python -m tests.fault.deduplicate KIND INPUT OUTPUT`."""

import json
import sys

from gristmill.backends.local import LocalExecutor
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow


def run(kind, source, output, *, workers=2):
    executor = LocalExecutor(num_workers=workers)
    if kind == "exact":
        workflow = ExactDeduplicationWorkflow(str(output), str(source), "jsonl", id_field="id", total_nparts=6)
        return workflow.run(executor=executor)
    options = {"id_field": "id", "index": f"{output}-index"}
    return FuzzyDeduplicationWorkflow(None, str(output), str(source), "jsonl", **options).run(executor=executor)


if __name__ == "__main__":
    print(json.dumps({key: str(value) for key, value in run(*sys.argv[1:4]).metadata.items()}))
