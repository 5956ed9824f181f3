"""Python says what the command line says: progress, warnings and a summary on standard error, unless it is quiet."""

import json
import os
import pty
import select
import subprocess
import sys

import pytest
from tests.fault.processes import wait_until

pytestmark = pytest.mark.slow

STAGES = '''
import os
from gristmill.backends.local import LocalExecutor
from gristmill.errors import TooManyQuarantined
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.deduplication.exact import ExactDeduplicationWorkflow

class NoThrees(ProcessingStage):
    name = "no_threes"
    def process(self, task):
        for text in task.column("text").to_pylist():
            if text == "text 3":
                raise ValueError(f"cannot take {text!r}")
        return task

class DiesOnThree(ProcessingStage):
    name = "dies_on_three"
    def process(self, task):
        if "text 3" in task.column("text").to_pylist():
            os._exit(9)
        return task

class Waits(ProcessingStage):
    """Until somebody opens a named pipe for writing."""
    name = "waits"
    def process(self, task):
        with open("gate") as gate:
            gate.read()
        return task

def run(*stages, workers=0, **options):
    line = [JsonlReader("raw/"), *stages, JsonlWriter("out/")]
    return Pipeline("demo", stages=line).run(LocalExecutor(num_workers=workers), **options)

if __name__ == "__main__":
'''


@pytest.fixture
def work(tmp_path):
    (tmp_path / "raw").mkdir()
    lines = [json.dumps({"id": f"d{n}", "text": f"text {n}"}) for n in range(6)]
    (tmp_path / "raw" / "a.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def program(work, body):
    script = work / "script.py"
    script.write_text(STAGES + "".join(f"    {line}\n" for line in body.splitlines()))
    return [sys.executable, str(script)]


def said(work, body, *, code=0):
    done = subprocess.run(program(work, body), cwd=work, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def test_a_script_ends_with_the_summary_on_standard_error(work):
    out, err = said(work, "result = run(NoThrees())\nprint(result)")

    assert "demo:\n        6  documents read" in err
    assert "1 in no_threes: ValueError: cannot take 'text 3'\n" in err
    assert f"for example document d3 in {work}/raw/a.jsonl" in err
    assert out in err, "print(result) is that summary"


def test_quiet_says_nothing_at_all(work):
    assert said(work, "run(NoThrees(), quiet=True)") == ("", "")


def test_a_worker_that_dies_is_told_at_once_and_its_document_in_the_end(work):
    _, err = said(work, "run(DiesOnThree(), workers=1)")

    assert "exit code 9 (in stage dies_on_three, " in err.partition("demo:")[0]
    assert "1 in dies_on_three: WorkerLost: the worker ended while processing it" in err


def test_an_observer_replaces_the_display_and_not_the_warnings(work):
    out, err = said(work, "seen = []\nrun(DiesOnThree(), workers=1, observer=seen.append)\nprint(len(seen) > 0)")

    assert out == "True\n"
    assert "exit code 9" in err
    assert "documents read" in err


def test_a_run_that_stops_at_its_limit_says_how_far_it_came(work):
    body = "try:\n    run(NoThrees(), max_quarantined=0)\nexcept TooManyQuarantined as error:\n    print(error)"
    out, err = said(work, body)

    assert "in stage no_threes: ValueError" in out
    assert "1  quarantined: they could not be processed" in err


def test_closed_and_missing_standard_error_harm_nothing(work):
    body = "import sys\nsys.stderr.close()\nprint(run().written)\nsys.stderr = None\nprint(run(fresh=True).written)"
    out, _ = said(work, body)

    assert out == "6\n6\n"


def test_a_workflow_says_one_summary_for_all_its_pipelines(work):
    (work / "raw" / "b.jsonl").write_text((work / "raw" / "a.jsonl").read_text() + "broken\n")
    body = "w = ExactDeduplicationWorkflow('once', 'raw', 'jsonl')\nprint(w.run(executor=LocalExecutor(num_workers=0)))"
    out, err = said(work, body)

    assert err.count("exact_deduplication:\n") == 1
    assert "documents read" not in err
    assert "12 documents, 6 duplicates" in err
    assert "could not be processed:\n  1 in jsonl_reader: broken_json" in err
    assert out in err


class Screen:
    """What a program writes to a terminal."""

    def __init__(self):
        self.ours, self.theirs = pty.openpty()
        self.text = ""

    def read(self):
        """Take in what is there; False when the program has closed it."""
        try:
            while select.select([self.ours], [], [], 0)[0]:
                piece = os.read(self.ours, 1 << 16)
                self.text += piece.decode(errors="replace")
        except OSError:  # what Linux says when the other end is closed
            return False
        return True


def test_a_terminal_shows_the_table_while_a_run_lasts(work):
    os.mkfifo(work / "gate")
    screen = Screen()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    command = program(work, "run(Waits(), workers=1)")
    with subprocess.Popen(command, cwd=work, stderr=screen.theirs, env=environment) as running:
        os.close(screen.theirs)
        try:
            wait_until(lambda: screen.read() and "0/1 parts" in screen.text, what="a table", program=running)
            (work / "gate").write_text("go on")
            wait_until(lambda: not screen.read(), what="the end")
            running.wait()
        finally:
            running.kill()
    os.close(screen.ours)

    assert running.returncode == 0
    assert "waits" in screen.text
    assert "6  documents read" in screen.text


def test_nothing_of_this_is_imported_before_it_is_needed(work):
    body = "run()\nimport sys\nprint(sorted({'rich', 'IPython', 'typer'} & set(sys.modules)))"

    assert said(work, body)[0] == "[]\n"
