"""A disk that is full ends a run with words and exit code 1; with room again, the same command gives all the bytes.

Where mounting is allowed, each directory of a run is a file system of its own with so many pages left; everywhere, a
limit on the size of files stops the installed command's own processes.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fault.disk.explorer import _difference
from tests.fault.disk.programs import PROGRAMS
from tests.fault.test_failing_disk import impatient  # noqa: F401  # a fixture

from gristmill.errors import ConfigError, MachineFailed

PAGE = os.sysconf("SC_PAGE_SIZE")
PLACES = [
    ("curate", "out"),
    ("curate", "rejects"),
    ("curate", "run/quarantine"),
    ("curate", "run"),  # ledger, status, metrics, event log
    ("regroup", "run/exchange-1"),
    ("regroup", "run"),
    ("exact", "out"),  # arrays between steps, duplicates.parquet, reports
    ("fuzzy", "index"),
]
GO_ON = "run the same command again to go on"

pytestmark = [pytest.mark.fault, pytest.mark.slow]


@pytest.fixture
def mounted():
    """Mount small file systems in memory; skips where that is not allowed."""
    made = []

    def mount(directory, pages):
        directory.mkdir(parents=True, exist_ok=True)
        options = f"size={pages * PAGE}"
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(directory)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"expected to be allowed to mount; {error}")
        made.append(directory)

    yield mount
    for directory in reversed(made):
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def _empty(directory):
    """Remove what is below a directory, but for what is mounted there."""
    for path in directory.iterdir():
        if path.is_mount() or (path.is_dir() and any(below.is_mount() for below in path.rglob("*"))):
            _empty(path)
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _fill(directory, pages_left):
    """Leave room for so many pages."""
    ballast = directory / "ballast"
    free = os.statvfs(directory).f_bavail * os.statvfs(directory).f_frsize
    ballast.write_bytes(bytes(free - pages_left * PAGE))
    return ballast


def _raised(program):
    try:
        program.run()
    except (MachineFailed, ConfigError) as error:
        return error
    return None


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("name", "where"), PLACES)
def test_with_room_again_the_same_call_gives_every_byte(tmp_path, mounted, name, where, capsys):
    program = PROGRAMS[name](tmp_path)
    program.restart()
    program.clear()
    small = program.work / where
    mounted(small, 200)
    books = program.run()
    expected = program.found()
    stopped, pages = 0, 0
    while True:
        _empty(program.work)
        ballast = _fill(small, pages)
        error = _raised(program)
        if error is None:
            break
        stopped += 1
        assert "No space left on device" in str(error), f"{pages} pages left"
        assert str(program.work) in str(error)
        if isinstance(error, MachineFailed):
            assert GO_ON in str(error)
            assert "free on its file system" in str(error)
        ballast.unlink(missing_ok=True)
        assert program.run() == books, f"{pages} pages left"
        assert not _difference(expected, program.found()), f"{pages} pages left"
        pages += 1 + pages // 4

    with capsys.disabled():
        print(f"\n{name}, {where} full: {stopped} runs stopped, with {pages} pages left it went through")
    ballast.unlink(missing_ok=True)  # in an exchange it is removed at the end
    assert not _difference(expected, program.found())
    assert stopped


FILTERS = {"rejects": "- ScoreFilter: {filter_obj: {WordCountFilter: {min_words: 100000}}}\n"}
KINDS = ("outputs", "rejects", "quarantine", "ledger")
LIMIT = 64 << 10


def _make_input(directory, kind):
    directory.mkdir()
    if kind == "ledger":  # many small partitions
        for number in range(150):
            (directory / f"{number:03d}.jsonl").write_text(json.dumps({"text": f"document {number}"}) + "\n")
        return
    lines = [json.dumps({"text": f"document {number} " * 50}) for number in range(300)]
    if kind == "quarantine":
        lines[1:1] = [f'{{"broken {"x" * 300}' for _ in range(300)]
    (directory / "a.jsonl").write_text("\n".join(lines) + "\n")


def _call(work, output, limit=None):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [str(Path(sys.executable).with_name("gristmill")), "run", "r.yaml", "--input", "in", "--output", output]
    options = ["--rejects", f"{output}-rejects", "--workers", "2", "--max-quarantined", "100%"]
    return subprocess.run(
        [*command, *options],
        cwd=work,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=limited if limit else None,  # nothing of this process runs threads here
    )


def _files(work, output):
    roots = [work / output, work / f"{output}-rejects", work / output / ".gristmill" / "quarantine"]
    files = [path for root in roots for path in sorted(root.glob("*.jsonl"))]
    return [(path.name, path.read_bytes()) for path in files]


@pytest.mark.parametrize("kind", KINDS)
def test_a_limit_on_the_size_of_files_ends_the_command_and_is_no_document_s_fault(tmp_path, kind):
    _make_input(tmp_path / "in", kind)
    reader, writer = "- JsonlReader: {file_paths: '${input}'}\n", "- JsonlWriter: {path: '${output}'}\n"
    recipe = f"name: r\nstages:\n{reader}{FILTERS.get(kind, '')}{writer}"
    (tmp_path / "r.yaml").write_text(recipe)
    whole = _call(tmp_path, "whole")
    assert whole.returncode == 0, whole.stderr

    stopped = _call(tmp_path, "out", limit=LIMIT)
    assert stopped.returncode == 1, stopped.stderr
    assert "File too large" in stopped.stderr
    assert "ulimit -f" in stopped.stderr
    assert GO_ON in stopped.stderr
    assert "free on its file system" in stopped.stderr
    assert "Traceback" not in stopped.stderr

    resumed = _call(tmp_path, "out")
    assert resumed.returncode == 0, resumed.stderr
    assert _files(tmp_path, "out") == _files(tmp_path, "whole")
