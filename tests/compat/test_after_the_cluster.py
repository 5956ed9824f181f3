"""Scripts stop their cluster first and look at the results then: that works, or is refused; it never hangs.

Each is a program of its own, because Ray keeps the token it once read for as long as a process lives.
"""

import os
import subprocess
import sys

import pytest
from tests.jsonl_files import write_documents
from tests.ray_cluster import QUIET

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.heavy,
    pytest.mark.xdist_group("ray"),
    pytest.mark.usefixtures("no_cluster"),
]
HEAD = """
import os, sys
from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.backends.ray_data import RayDataExecutor
from gristmill.core.client import RayClient
from gristmill.errors import RunFailed
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader
import ray

pipeline = Pipeline("read", stages=[JsonlReader("raw")])

def texts(result):
    return [len(text) for task in result for text in task.column("text").to_pylist()]
"""
STOPPED = """
client = RayClient(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20)
client.start()
results = [pipeline.run(executor) for executor in (RayActorPoolExecutor(), RayDataExecutor())]
client.stop()

assert not ray.is_initialized()
assert "RAY_AUTH_MODE" not in os.environ
print([texts(result) for result in results])
"""
SHUT_DOWN = """
result = pipeline.run(RayDataExecutor())
ray.shutdown()
try:
    texts(result)
except RunFailed as error:
    print(error)
assert not ray.is_initialized()
"""


def run(script, tmp_path):
    write_documents(tmp_path / "raw" / "part.jsonl", [{"id": str(n), "text": "long " * 50_000} for n in range(3)])
    (tmp_path / ".ray").mkdir()
    # As everybody has one who has ever called `ray.init()`: from then on Ray's own command asks for it.
    (tmp_path / ".ray" / "auth_token").write_text("0123456789abcdef" * 4)
    environment = {**os.environ, **QUIET, "HOME": str(tmp_path)}
    command = [sys.executable, "-c", HEAD + script]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, timeout=200
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_results_can_be_read_after_the_client_has_stopped_ray(tmp_path):
    assert run(STOPPED, tmp_path) == str([[250_000] * 3] * 2)


def test_results_of_a_ray_that_was_shut_down_are_refused_in_words(tmp_path):
    assert run(SHUT_DOWN, tmp_path).startswith("results: expected Ray to be still running, to fetch a task; it was")
