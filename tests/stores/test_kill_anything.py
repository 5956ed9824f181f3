"""`kill -9` of drivers and workers of a run whose input, output and run directory are on a real S3 server.

The same command again, from another working directory and without any file of the machine before, gives the output of
an undisturbed run.
"""

import functools
import json
import random
import signal
from pathlib import Path

import psutil
import pytest
from tests.fault.corpus import make_corpus
from tests.fault.processes import ROOT, Scene, finish, pause, wait_until

pytestmark = [pytest.mark.heavy, pytest.mark.fault, pytest.mark.slow]

PARTITIONS = 60
KILLS = 20
HELD = 36  # committed partitions with which the run waits to be killed, so that it cannot end before
SEED = 9
WORK_MS = 20
DEADLINE_S = 240


@pytest.fixture
def corpus(store, tmp_path, request):
    """The corpus on the store, below a prefix of this test's own."""
    make_corpus(tmp_path / "raw", PARTITIONS)
    prefix = request.node.name.replace("[", "-").rstrip("]")
    for file in (tmp_path / "raw").iterdir():
        store.put(f"{prefix}/raw/{file.name}", file.read_bytes())
    return prefix


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # programs start in directories of their own
    made = Scene(tmp_path)
    yield made
    made.close()


def curate(scene, store, prefix, work, number, **options):
    """Run the program as another machine would: in another directory, with nothing of the one before."""
    cwd = scene.work / f"machine-{number}"
    cwd.mkdir(exist_ok=True)
    url = f"{store.url}/{prefix}"
    arguments = ("-m", "tests.fault.curate", f"{url}/raw", f"{url}/{work}", "--work-ms", WORK_MS)
    return scene.start(*arguments, cwd=cwd, **options)


@functools.cache
def content(store, key):
    """An object of the ledger; none ever changes."""
    return store.client().get_object(Bucket=store.bucket, Key=key)["Body"].read().decode()


def lines(store, prefix, work):
    """The lines of the ledger, each with the session that wrote it, those about line numbers left out."""
    found = []
    for key in store.keys(f"{prefix}/{work}/run/ledger/"):
        opening, *rest = content(store, key).splitlines()
        found += [(json.loads(opening)["session"], json.loads(line)) for line in rest]
    numbered = [any(file["temporary"].endswith(".numbered") for file in line["side_files"]) for _, line in found]
    return [each for each, again in zip(found, numbered, strict=True) if not again]


def published(store, prefix, work):
    """Output, rejects and quarantine as bytes; what says where the documents came from is the same for all works."""
    below = [f"{prefix}/{work}/{name}" for name in ("out", "rejects", "run/quarantine")]
    found = {f"{name}/{key}": data for name in below for key, data in store.objects(name).items()}
    return {key.replace(f"/{work}/", "/"): data for key, data in found.items()}


def workers_of(program):
    try:
        return [worker for server in psutil.Process(program.pid).children() for worker in server.children()]
    except psutil.NoSuchProcess:
        return []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["seaweedfs"], indirect=True)
def test_twenty_kills_of_drivers_and_workers_change_nothing(store, corpus, scene):
    finish(curate(scene, store, corpus, "whole", "whole"), deadline_s=DEADLINE_S)
    moments = random.Random(SEED)
    gate = scene.work / "gate"  # with a line in it the program labours no more
    hold, machines = (1, gate), 0
    program = curate(scene, store, corpus, "killed", machines, hold=hold)

    def committed():
        count = len(lines(store, corpus, "killed"))
        if count >= HELD:
            gate.write_text("stop\n")
        return count

    for kill in range(KILLS):
        due = kill * HELD // KILLS
        wait_until(
            lambda due=due: pause(0.05) or committed() >= due,
            what=f"{due} commits",
            program=program,
            deadline_s=DEADLINE_S,
        )
        pause(moments.uniform(0, 0.3))
        assert program.poll() is None, program.communicate()
        if moments.random() < 0.4:
            program.kill()
            program.communicate()
            machines += 1
            program = curate(scene, store, corpus, "killed", machines, hold=hold)
            continue
        workers = wait_until(lambda p=program: workers_of(p), what="a worker", program=program)
        victim = moments.choice(workers or [])
        if victim.is_running():
            victim.send_signal(signal.SIGKILL)
    program.kill()
    program.communicate()
    gate.unlink(missing_ok=True)
    finish(curate(scene, store, corpus, "killed", "last"), deadline_s=DEADLINE_S)

    assert machines >= 5
    assert published(store, corpus, "killed") == published(store, corpus, "whole")
    done = lines(store, corpus, "killed")
    assert sorted(line["root"] for _, line in done) == list(range(PARTITIONS)), "finished work was redone"
    assert len({session for session, _ in done}) > 1
    assert_nothing_temporary_is_left(store, corpus, scene)


def assert_nothing_temporary_is_left(store, prefix, scene):
    assert [key for key in store.keys(prefix) if "/tmp/" in key] == []
    leases = [key.rpartition("/")[2] for key in store.keys(f"{prefix}/killed") if "/lease/" in key]
    assert all(name.removesuffix(".json").isdecimal() and len(name) == 13 for name in leases), leases
    assert not store.client().list_multipart_uploads(Bucket=store.bucket, Prefix=prefix).get("Uploads")
    wait_until(lambda: not scene.processes(), what="every process to end")
    assert scene.left_behind() == []
    assert list(Path(scene.work).glob("machine-*/*")) == []  # above all, no folder called s3:
