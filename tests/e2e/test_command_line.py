"""The installed command from start to finish: what it prints, what it writes, how it exits."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).parent / "gristmill")
PROSE = "The miller went to the river with a sack of grain, and that was all he had to do. " * 5
DOCUMENTS = [
    {"id": "good-1", "text": PROSE},
    {"id": "short", "text": "Too short."},
    {"id": "null", "text": None},
    {"id": "good-2", "text": PROSE + "And so on."},
]

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def gristmill(*arguments, cwd):
    """Run the command; no mistake takes longer than the time limit to be found."""
    return subprocess.run([COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("module", ["gristmill", "gristmill.cli.main"])
def test_a_module_is_the_command(module, tmp_path):
    called = [sys.executable, "-m", module]
    version = subprocess.run([*called, "--version"], capture_output=True, text=True, timeout=60, check=False)
    wrong = subprocess.run(
        [*called, "status", "nowhere"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert (version.returncode, version.stdout.split()[0]) == (0, "gristmill")
    assert (wrong.returncode, wrong.stderr.split()[:2]) == (2, ["gristmill:", "status:"])


def last_json(done):
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def work(tmp_path):
    (tmp_path / "raw").mkdir()
    lines = [json.dumps(document) for document in DOCUMENTS]
    (tmp_path / "raw" / "part.jsonl").write_text("\n".join([*lines, "{broken"]) + "\n")
    return tmp_path


def written(directory):
    return [
        json.loads(line)["id"] for file in sorted(directory.glob("*.jsonl")) for line in file.read_text().splitlines()
    ]


RUN = ("run", "basic-english", "--input", "raw", "--output", "clean")


def test_a_run_keeps_good_documents_and_accounts_for_the_others(work):
    done = gristmill(*RUN, "--json", cwd=work)
    result = last_json(done)

    assert done.returncode == 0, done.stderr
    assert written(work / "clean") == ["good-1", "good-2"]
    assert {key: result[key] for key in ("read", "written", "quarantined")} == {
        "read": 5,
        "written": 2,
        "quarantined": 1,
    }
    assert result["dropped"] == {"word_count": {"word_count": 1, "null_text": 1}}
    assert [Path(file).name for file in result["output_files"]] == [f.name for f in (work / "clean").glob("*.jsonl")]
    assert Path(result["run_dir"]).name == ".gristmill"
    assert result["wall_s"] >= 0


def test_a_script_that_asked_for_json_gets_it_for_an_unknown_option_too(work):
    done = gristmill(*RUN, "--json", "--wrokers", "2", cwd=work)

    assert done.returncode == 2
    assert last_json(done)["exit_code"] == 2
    assert "--wrokers" in done.stderr


def test_only_the_json_object_goes_to_standard_output(work):
    assert len(gristmill(*RUN, "--json", cwd=work).stdout.splitlines()) == 1


def test_the_summary_says_what_happened_and_where_to_look(work):
    summary = gristmill(*RUN, "--rejects", "rejects", cwd=work).stderr

    for words in ("5  documents read", "2  kept (40 %)", "dropped", "1  quarantined", "rejects", "quarantine"):
        assert words in summary


def test_quiet_prints_nothing(work):
    done = gristmill(*RUN, "--quiet", cwd=work)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_rejects_hold_the_document_with_reason_value_and_threshold(work):
    gristmill(*RUN, "--rejects", "rejects", cwd=work)
    rejects = [
        json.loads(line) for file in (work / "rejects").rglob("*.jsonl") for line in file.read_text().splitlines()
    ]
    [short] = [reject for reject in rejects if reject["id"] == "short"]

    assert Path(short.pop("reject_source")).name == "part.jsonl"
    assert {key: value for key, value in short.items() if key.startswith("reject_")} == {
        "reject_id": "short",
        "reject_stage": "word_count",
        "reject_reason": "word_count",
        "reject_value": 2,
        "reject_threshold": "50 ≤ words ≤ 100000",
    }


def test_quarantine_names_the_file_and_the_line(work):
    gristmill(*RUN, cwd=work)
    [file] = (work / "clean" / ".gristmill" / "quarantine").rglob("*.jsonl")
    record = json.loads(file.read_text())

    assert (Path(record["source"]).name, record["line"]) == ("part.jsonl", 5)


def test_a_finished_run_is_left_alone(work):
    gristmill(*RUN, cwd=work)
    before = {file.name: file.stat().st_mtime_ns for file in (work / "clean").glob("*.jsonl")}
    again = gristmill(*RUN, "--json", cwd=work)

    assert again.returncode == 0
    assert last_json(again)["already_finished"] is True
    assert {file.name: file.stat().st_mtime_ns for file in (work / "clean").glob("*.jsonl")} == before


def test_a_changed_threshold_is_refused_until_told_to_start_over(work):
    gristmill(*RUN, cwd=work)
    refused = gristmill(*RUN, "--set", "min_words=1", cwd=work)
    fresh = gristmill(*RUN, "--set", "min_words=1", "--fresh", cwd=work)

    assert refused.returncode == 2
    assert "--fresh" in refused.stderr
    assert fresh.returncode == 0, fresh.stderr


def test_more_quarantined_documents_than_allowed_exit_with_3_and_keep_what_is_good(work):
    done = gristmill(*RUN, "--max-quarantined", "0", "--json", cwd=work)

    assert done.returncode == 3, done.stderr
    assert last_json(done)["quarantined"] == 1
    assert last_json(done)["wall_s"] > 0
    assert json.loads((work / "clean" / ".gristmill" / "report.json").read_text())["wall_s"] > 0
    assert written(work / "clean") == ["good-1", "good-2"]


def test_a_sample_does_not_replace_a_full_run(work):
    full = gristmill(*RUN, cwd=work)
    before = written(work / "clean")
    refused = gristmill(*RUN, "--sample", "1", cwd=work)

    assert (full.returncode, refused.returncode) == (0, 2)
    assert "holds one, and its files would be removed" in refused.stderr
    assert written(work / "clean") == before != []


def test_a_sample_is_the_first_documents(work):
    lines = [json.dumps({"id": n, "text": PROSE}) for n in range(1000)]
    (work / "raw" / "more.jsonl").write_text("\n".join(["no document", *lines]) + "\n")
    done = gristmill("run", "passthrough", "--input", "raw", "--output", "trial", "--sample", "7", "--json", cwd=work)

    assert done.returncode == 0, done.stderr
    assert {key: last_json(done)[key] for key in ("read", "written", "quarantined")} == {
        "read": 8,
        "written": 7,
        "quarantined": 1,
    }
    assert written(work / "trial") == list(range(7))


def test_status_reads_a_finished_run_from_another_process(work):
    gristmill(*RUN, cwd=work)
    shown = gristmill("status", "clean", cwd=work)
    document = last_json(gristmill("status", "clean/.gristmill", "--json", cwd=work))

    assert "finished" in shown.stdout
    assert "word_count" in shown.stdout
    assert document["status"]["state"] == "finished"


def test_watching_a_finished_run_ends_at_once(work):
    gristmill(*RUN, cwd=work)

    assert gristmill("status", "clean", "--watch", cwd=work).returncode == 0


def test_a_plan_shows_what_would_run_and_writes_nothing(work):
    done = gristmill("plan", "basic-english", "--input", "raw", "--output", "clean", cwd=work)
    document = last_json(gristmill("plan", "basic-english", "--input", "raw", "--output", "clean", "--json", cwd=work))

    assert done.returncode == 0, done.stderr
    assert "word_count" in done.stdout
    assert len(document["groups"]) == 1
    assert not (work / "clean").exists()


MISTAKES = {
    "recipe": (("run", "basic-englsh", "--input", "raw"), "did you mean 'basic-english'?"),
    "variable": ((*RUN, "--set", "min_word=5"), "did you mean 'min_words'?"),
    "value": ((*RUN, "--set", "min_words=many"), "min_words: expected int; got 'many'"),
    "no input": (("run", "basic-english", "--output", "clean"), "it is not set (--input)"),
    "option": ((*RUN, "--worker", "2"), "--workers"),
    "limit": ((*RUN, "--max-quarantined", "few"), "--max-quarantined: expected a number of documents"),
    "executor": ((*RUN, "--executor", "locl"), "did you mean 'local'?"),
    "path": (("run", "basic-english", "--input", "row", "--output", "clean"), "row"),
    "column": ((*RUN, "--set", "text_field=txt"), "'txt'"),
    "run directory": (("status", "raw"), "expected the directory of a run"),
}


@pytest.mark.parametrize(("arguments", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_without_a_traceback_and_writes_nothing(work, arguments, words):
    done = gristmill(*arguments, cwd=work)

    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert written(work / "clean") == []


def test_debug_shows_the_traceback(work):
    assert "Traceback" in gristmill("run", "nowhere", "--debug", cwd=work).stderr


def test_a_mistake_is_also_an_object_for_scripts(work):
    done = gristmill("run", "nowhere", "--json", cwd=work)

    assert last_json(done)["exit_code"] == done.returncode == 2


OWN_STAGES = '''
import os, signal
from gristmill.stages.base import ProcessingStage

class Shout(ProcessingStage):
    def process(self, task):
        texts = [text and text.upper() for text in task.column("text").to_pylist()]
        import pyarrow as pa
        return task.with_column("text", pa.array(texts, pa.string()))

class Interrupt(ProcessingStage):
    """Does what Ctrl-C does, until there is a file that says otherwise."""
    def process(self, task):
        if not os.path.exists("go-on"):
            os.kill(os.getpid(), signal.SIGINT)
        return task
'''


def own_recipe(work, stage):
    (work / "own_stages.py").write_text(OWN_STAGES)
    (work / "own.yaml").write_text(
        'name: own\nstages:\n- JsonlReader: {file_paths: "${input}"}\n'
        f'- own_stages.{stage}\n- JsonlWriter: {{path: "${{output}}"}}\n'
    )
    return ("run", "own.yaml", "--input", "raw", "--output", "clean", "--allow-module", "own_stages")


VALUE = 'JsonlReader: {file_paths: raw, blocksize: {_target_: subprocess.getoutput, cmd: "touch PWNED"}}'


@pytest.mark.parametrize(
    ("command", "stage"),
    [
        *((command, VALUE) for command in ("plan", "run", "slurm", "score")),
        ("plan", "_target_: subprocess.Popen\n  args: [touch, PWNED]"),
        ("plan", "_target_: evil.Stage"),
    ],
)
def test_a_recipe_of_a_stranger_runs_nothing_and_the_answer_says_how_to_allow_it(work, command, stage):
    (work / "evil.py").write_text("import pathlib\npathlib.Path('PWNED').touch()")
    (work / "r.yaml").write_text(f"name: r\nstages:\n- {stage}\n- JsonlWriter: {{path: '${{output}}'}}\n")
    done = gristmill(command, "r.yaml", "--output", "clean", cwd=work)

    assert done.returncode == 2
    assert "--allow-module " + ("evil" if "evil" in stage else "subprocess") in done.stderr
    assert not (work / "PWNED").exists()


def test_a_stage_of_the_users_own_runs_in_the_workers(work):
    done = gristmill(*own_recipe(work, "Shout"), "--workers", "2", cwd=work)
    [file] = (work / "clean").glob("*.jsonl")

    assert done.returncode == 0, done.stderr
    assert json.loads(file.read_text().splitlines()[0])["text"] == PROSE.upper()


def test_ctrl_c_says_how_to_continue_and_the_same_command_does(work):
    command = (*own_recipe(work, "Interrupt"), "--workers", "0")
    stopped = gristmill(*command, cwd=work)
    (work / "go-on").touch()
    continued = gristmill(*command, "--json", cwd=work)

    assert stopped.returncode == 130
    assert "Run the same command again to continue" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert continued.returncode == 0, continued.stderr
    assert last_json(continued)["written"] == 4
