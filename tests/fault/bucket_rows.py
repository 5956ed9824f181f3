"""The program that is killed on either side of a barrier: `python -m tests.fault.bucket_rows INPUT WORK`."""

import json
import sys

from tests.fault.curate import Labour

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.stages.text.quality import BucketScores

WORK_MS = 20


def run(source, work, *, workers=2):
    stages = [
        JsonlReader(str(source)),
        Labour(WORK_MS),
        BucketScores("score"),
        Labour(WORK_MS).with_(name="more_labour"),
    ]
    pipeline = Pipeline("bucket", stages=[*stages, JsonlWriter(f"{work}/out")])
    return pipeline.run(LocalExecutor(num_workers=workers), checkpoint_path=f"{work}/run")


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2]).to_json()))
