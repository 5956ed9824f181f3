"""The program that is killed within an exchange: `python -m tests.fault.exchange_rows INPUT WORK`."""

import json
import sys

from tests.fault.curate import Labour

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io import JsonlReader, JsonlWriter

WORK_MS = 20


def run(source, work, *, workers=2):
    stages = [
        JsonlReader(str(source)),
        Labour(WORK_MS),
        Exchange("text", 24),
        Labour(WORK_MS).with_(name="more_labour"),
    ]
    pipeline = Pipeline("regroup", stages=[*stages, JsonlWriter(f"{work}/out")])
    return pipeline.run(LocalExecutor(num_workers=workers), checkpoint_path=f"{work}/run")


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2]).to_json()))
