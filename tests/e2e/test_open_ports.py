"""A run listens on no port unless it is asked to, and then on one."""

import json

import psutil
import pytest
from tests.fault.processes import Scene, finish, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

COMMAND = ("-m", "gristmill.cli.main")
WORKERS = 2
OWN = """
import select
from pathlib import Path
from gristmill.stages.base import ProcessingStage

class Gate(ProcessingStage):
    name = "gate"
    def process(self, batch):
        Path("reached-" + batch.column("id").to_pylist()[0]).touch()
        while not Path("open").exists():
            select.select([], [], [], 0.01)
        return batch
"""
RECIPE = """
name: gated
stages:
- JsonlReader: {file_paths: "${input}"}
- own_stages.Gate
- JsonlWriter: {path: "${output}"}
"""


@pytest.fixture
def scene(tmp_path):
    (tmp_path / "raw").mkdir()
    for number in range(WORKERS):
        (tmp_path / "raw" / f"{number}.jsonl").write_text(json.dumps({"id": str(number), "text": "a word"}) + "\n")
    (tmp_path / "own_stages.py").write_text(OWN)
    (tmp_path / "gated.yaml").write_text(RECIPE)
    made = Scene(tmp_path)
    yield made
    made.close()


def ports_listened_on(scene):
    """Of every process of the run: TCP sockets that take calls, and UDP sockets, which take whatever comes."""
    sockets = [found for process in scene.processes() for found in process.net_connections(kind="inet")]
    calls = {found.laddr for found in sockets if found.status == psutil.CONN_LISTEN}
    return calls | {found.laddr for found in sockets if found.type.name == "SOCK_DGRAM"}


def held(scene, *options):
    """Start a run and wait until each of its workers has a document that does not go on."""
    given = ("gated.yaml", "-i", "raw", "-o", "out", "--allow-module", "own_stages", "--workers", WORKERS, "--json")
    program = scene.start(*COMMAND, "run", *given, *options, cwd=scene.work)
    for number in range(WORKERS):
        reached = (scene.work / f"reached-{number}").exists
        assert wait_until(reached, what=f"document {number} to be held", program=program), program.communicate()[1]
    assert len(scene.processes()) > WORKERS
    return program


def let_go(scene, program):
    (scene.work / "open").touch()
    assert json.loads(finish(program)[0])["written"] == WORKERS


def test_a_run_that_was_not_asked_to_listens_nowhere(scene):
    program = held(scene)

    assert ports_listened_on(scene) == set()
    let_go(scene, program)


def test_a_run_that_is_asked_for_metrics_listens_on_one_port_of_this_machine_alone(scene):
    program = held(scene, "--metrics-port", 0, "--metrics-linger", 0)

    [address] = ports_listened_on(scene)
    assert address.ip == "127.0.0.1"
    let_go(scene, program)
