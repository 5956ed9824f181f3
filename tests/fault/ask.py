"""A program with remote calls, to be disturbed: `python -m tests.fault.ask INPUT WORK --port P [--lanes N]`.

Every document is a request to the server of `tests.slow_http`; its answer becomes a column. The port is no part of the
stage's configuration: another program with another server must be able to go on where one was killed.
"""

import argparse
import asyncio
import os

import pyarrow as pa
from tests.fault.hold import VARIABLE, wait_while_held
from tests.slow_http import Client

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch

PORT = "GRISTMILL_TEST_PORT"


class AskServer(ProcessingStage[DocumentBatch, DocumentBatch]):
    """One request a document, all of a task at once."""

    name = "ask_server"

    async def setup(self, worker_metadata=None):
        self._client = Client(int(os.environ[PORT]))

    async def teardown(self):
        await self._client.close()

    async def process(self, task):
        if os.environ.get(VARIABLE):
            await asyncio.to_thread(wait_while_held)
        answers = await asyncio.gather(*map(self._client.ask, task.column("id").to_pylist()))
        return task.with_data(task.to_pyarrow().append_column("answer", pa.array(answers, pa.string())))


def run(source, work, *, port, lanes=16, workers=2):
    os.environ[PORT] = str(port)
    stages = [JsonlReader(file_paths=str(source)), AskServer().with_(lanes=lanes), JsonlWriter(path=f"{work}/out")]
    executor = LocalExecutor(num_workers=workers)
    return Pipeline("ask", stages=stages).run(executor, checkpoint_path=f"{work}/run")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("work")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--lanes", type=int, default=16)
    given = parser.parse_args()
    run(given.source, given.work, port=given.port, lanes=given.lanes)


if __name__ == "__main__":
    main()
