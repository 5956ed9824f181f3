"""However a run ends, the command says why once, without a traceback, and with --json in one object."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

COMMAND = Path(sys.executable).parent / "gristmill"

STAGES = '''
import os
import resource
from gristmill.stages.base import ProcessingStage

class FailsAlways(ProcessingStage):
    name = "fails_always"
    def process(self, task):
        raise KeyError("missing piece")

class FailsOften(ProcessingStage):
    name = "fails_often"
    def process(self, task):
        for text in task.column("text").to_pylist():
            if text.startswith("text 1"):
                raise ValueError(f"cannot take {text!r}")
        return task

class FillsTheDisk(ProcessingStage):
    """From here on no file can grow beyond a few bytes, as on a disk without room."""
    name = "fills_the_disk"
    def setup(self, worker_metadata=None):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    def process(self, task):
        return task

class Truncates(ProcessingStage):
    """Somebody cuts another input while this one is processed."""
    name = "truncates"
    def process(self, task):
        os.truncate("raw/b.jsonl", 10)
        return task
'''


@pytest.fixture
def work(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "own_stages.py").write_text(STAGES)
    for name in "ab":
        lines = [json.dumps({"id": f"{name}{n}", "text": f"text {n}"}) for n in range(40)]
        (tmp_path / "raw" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def ended(work, stage, *options):
    (work / "own.yaml").write_text(
        f'name: own\nstages:\n- JsonlReader: {{file_paths: "${{input}}"}}\n- own_stages.{stage}\n'
        '- JsonlWriter: {path: "${output}"}\n'
    )
    paths = ("run", "own.yaml", "--allow-module", "own_stages", "--input", "raw", "--output", "out")
    command = [COMMAND, *paths, *options]
    return subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=120, check=False)


ENDINGS = {
    "FailsAlways": (1, "fails_always: no document has passed it", ()),
    "FillsTheDisk": (1, "File too large", ("--workers", "1")),
    "Truncates": (1, "b.jsonl", ("--workers", "0")),
    "FailsOften": (3, "expected at most 5 % of the documents read in quarantine", ("--max-quarantined", "5%")),
}


@pytest.mark.parametrize("stage", ENDINGS)
def test_an_ending_is_said_once_and_has_its_code(work, stage):
    code, words, options = ENDINGS[stage]
    done = ended(work, stage, *options)
    said = [line for line in done.stderr.splitlines() if line.startswith("gristmill: ")]

    assert done.returncode == code, done.stderr
    assert len(said) == 1, done.stderr
    assert words in done.stderr[done.stderr.index("gristmill: ") :]
    assert 'File "' + str(Path(sys.prefix)) not in done.stderr, "a traceback of the command line"
    assert done.stdout == ""


@pytest.mark.parametrize("stage", ENDINGS)
def test_a_script_gets_one_object_with_the_error(work, stage):
    code, words, options = ENDINGS[stage]
    done = ended(work, stage, *options, "--json", "--quiet")
    [line] = done.stdout.splitlines()
    told = json.loads(line)

    assert told["exit_code"] == done.returncode == code
    assert words in told["error"]


@pytest.mark.parametrize(("stage", "read"), [("Truncates", 40), ("FailsOften", 80)])
def test_a_run_that_has_books_says_them_too(work, stage, read):
    _, _, options = ENDINGS[stage]
    done = ended(work, stage, *options, "--json")

    assert json.loads(done.stdout)["read"] == read
    assert f"{read}  documents read" in done.stderr


def test_a_file_in_the_working_directory_is_not_taken_for_a_module_of_pythons(work):
    for name in ("copy", "types", "socket", "pickle"):
        (work / f"{name}.py").write_text("import os\nos._exit(66)\n")
    (work / "plain.yaml").write_text(
        'name: c\nstages:\n  - JsonlReader: {file_paths: "${input}"}\n  - JsonlWriter: {path: "${output}"}\n'
    )
    command = [COMMAND, "run", "plain.yaml", "--input", "raw", "--output", "out", "--workers", "1"]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr


NOWHERE = {
    "full": "2> /dev/full",
    "closed": "2>&-",
    "all-closed": "0<&- 1>&- 2>&-",
}


@pytest.mark.parametrize("redirected", NOWHERE)
@pytest.mark.parametrize("how", ["command", "script"])
def test_a_run_that_nobody_listens_to_is_done_all_the_same(work, redirected, how):
    (work / "copy.yaml").write_text(
        'name: c\nstages:\n  - JsonlReader: {file_paths: "${input}"}\n  - JsonlWriter: {path: "${output}"}\n'
    )
    (work / "run.py").write_text(
        "from gristmill.config.run import create_pipeline_from_yaml\n"
        "if __name__ == '__main__':\n    create_pipeline_from_yaml('copy.yaml', input='raw', output='out').run()\n"
    )
    command = f"{COMMAND} run copy.yaml --input raw --output out" if how == "command" else f"{sys.executable} run.py"
    done = subprocess.run(["sh", "-c", f"{command} {NOWHERE[redirected]}"], cwd=work, check=False, timeout=120)

    assert done.returncode == 0
    for name in "ab":
        assert (work / "out" / f"{name}.jsonl").read_bytes() == (work / "raw" / f"{name}.jsonl").read_bytes()
