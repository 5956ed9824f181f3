"""A disk that fills up: the run stops in words, no document is blamed, and with room the same command completes it.

The disks are real: file systems of a few pages in memory, mounted where outputs, rejects or the run directory are, and
elsewhere (whoever is not root) a limit on the size of files.
"""

import errno
import os
import resource
import subprocess

import pytest
from tests.fault.corpus import make_corpus
from tests.fault.curate import run as curate
from tests.fault.exchange_rows import run as regroup
from tests.fault.processes import finish
from tests.fault.traces import contents, temporary_files

pytestmark = [pytest.mark.fault, pytest.mark.slow]

PARTITIONS = 20
# How long a run waits for room is tested elsewhere.
IMPATIENT = "from gristmill.engine.policies import retry; retry.MAX_MACHINE = 1; retry.MAX_PAUSE_S = 0.0; "
CURATE = IMPATIENT + "from tests.fault.curate import main; main()"
REGROUP = IMPATIENT + "import runpy; runpy.run_module('tests.fault.exchange_rows', run_name='__main__')"


class Disk:
    """A small file system in memory."""

    def __init__(self, path, size):
        path.mkdir(parents=True)
        self.path = path
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], check=True)

    def make_room(self):
        subprocess.run(["mount", "-o", "remount,size=64m", str(self.path)], check=True)

    def close(self):
        subprocess.run(["umount", "--lazy", str(self.path)], check=True)


def can_mount(folder):
    try:
        Disk(folder / "probe", "4k").close()
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@pytest.fixture
def mount(tmp_path):
    if not can_mount(tmp_path):
        pytest.skip("mounting needs root")
    disks = []

    def mounted(path, size):
        disks.append(Disk(path, size))
        return disks[-1]

    yield mounted
    for disk in disks:
        disk.close()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    source = tmp_path_factory.mktemp("corpus") / "raw"
    make_corpus(source, PARTITIONS)
    return source


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    curated, regrouped = tmp_path_factory.mktemp("curated"), tmp_path_factory.mktemp("regrouped")
    curate(corpus, curated, work_ms=1)
    regroup(corpus, regrouped)
    return {CURATE: contents(curated), REGROUP: contents(regrouped)}


@pytest.mark.parametrize(
    ("program", "where", "size"),
    [
        (CURATE, "out", "32k"),
        (CURATE, "rejects", "16k"),
        (CURATE, "run/quarantine", "8k"),
        (CURATE, "run", "32k"),
        (REGROUP, "run", "64k"),
        (REGROUP, "out", "8k"),
    ],
    ids=["outputs", "rejects", "quarantine", "run-directory", "exchange", "outputs-after-exchange"],
)
def test_with_room_again_the_same_command_gives_the_bytes_of_an_undisturbed_run(
    scene, mount, corpus, undisturbed, program, where, size
):
    disk = mount(scene.work / where, size)
    _, said = finish(scene.start("-c", program, corpus, scene.work), expected=1)

    assert os.strerror(errno.ENOSPC) in said
    assert "MachineFailed" in said
    assert "quarantined:" not in said, "documents are to blame for nothing"

    disk.make_room()
    finish(scene.start("-c", program, corpus, scene.work))
    assert contents(scene.work) == undisturbed[program]
    assert temporary_files(scene.work) == []


def test_what_others_keep_on_a_disk_that_fills_up_is_left_alone(scene, mount, corpus, undisturbed):
    disk = mount(scene.work / "out", "32k")
    theirs = disk.path / "theirs.txt"
    theirs.write_text("not of this run")
    finish(scene.start("-c", CURATE, corpus, scene.work), expected=1)
    disk.make_room()
    finish(scene.start("-c", CURATE, corpus, scene.work))

    assert contents(scene.work) == {**undisturbed[CURATE], "out/theirs.txt": b"not of this run"}


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))


def test_a_limit_on_the_size_of_files_stops_a_run_like_a_full_disk(scene, corpus, undisturbed):
    program = scene.start("-c", CURATE, corpus, scene.work, preexec_fn=limit_files)
    _, said = finish(program, expected=1)

    assert os.strerror(errno.EFBIG) in said
    assert "MachineFailed" in said

    finish(scene.start("-c", CURATE, corpus, scene.work))
    assert contents(scene.work) == undisturbed[CURATE]
