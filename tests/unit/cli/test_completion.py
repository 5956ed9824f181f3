"""A shell is told how a word may go on, and no file name is ever run by it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gristmill.cli.completion import SCRIPTS, answer_shell, candidates, join_equals
from gristmill.cli.main import app

ROOT = typer.main.get_command(app)


def offered(*words):
    return [candidate.value for candidate in candidates(ROOT, list(words))]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clean" / ".gristmill").mkdir(parents=True)
    (tmp_path / "runs" / "odd name" / ".gristmill").mkdir(parents=True)
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "notes.txt").touch()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["st"], ["status", "stages"]),
        (["run", "basic"], ["basic-english"]),
        (["run", "m"], ["multilingual-heuristics", "mine.yaml"]),
        (["run", "x", "--executor", ""], ["local", "ray", "ray-data", "xenna"]),
        (["run", "x", "--executor=ray"], ["--executor=ray", "--executor=ray-data"]),
        (["run", "x", "--executor", "ray_"], ["ray_data"]),
        (["run", "x", "--exe"], ["--executor"]),
        (["run", "--quiet", "basic"], ["basic-english"]),
        (["run", "--workers", "2", "basic"], ["basic-english"]),
        (["status", ""], ["clean", "runs/"]),
        (["status", "runs/"], ["runs/odd name"]),
        (["status", "nowhere/"], []),
        (["dedup", "f"], ["fuzzy"]),
        (["recipes", "show", "c4"], ["c4"]),
        (["stages", "WordCount"], ["WordCountFilter"]),
        (["run", "x", "--input", "m"], []),
        (["no-such-command", ""], []),
        (["run", "x", "--no-such="], []),
        (["completion", "z"], ["zsh"]),
    ],
)
def test_what_a_word_may_become(words, expected):
    assert offered(*words) == expected


def test_bash_cuts_words_at_the_equals_sign_and_gets_back_what_is_behind_it():
    assert join_equals(["run", "--executor", "=", ""]) == (["run", "--executor="], 11)
    assert join_equals(["run", "a", "="]) == (["run", "a", "="], 0)
    assert answer_shell(app, "bash", ["run", "x", "--executor", "=", "ray-"]).startswith("ray-data\t")


def test_a_name_with_a_line_break_is_not_offered(tmp_path):
    (tmp_path / "two\nlines" / ".gristmill").mkdir(parents=True)
    assert "two" not in answer_shell(app, "fish", ["status", ""])


@pytest.mark.slow
@pytest.mark.parametrize("shell", [shell for shell in SCRIPTS if shutil.which(shell)])
def test_a_shell_takes_its_script(shell, tmp_path):
    (tmp_path / "x$(touch ran)" / ".gristmill").mkdir(parents=True)
    script = CliRunner().invoke(app, ["completion", shell]).output
    ask = {
        "bash": 'COMP_WORDS=(gristmill status x); COMP_CWORD=2; _gristmill 2>/dev/null; echo "${COMPREPLY[@]}"',
        "zsh": "whence -w _gristmill",
        "fish": "complete -C 'gristmill status x'",
    }[shell]
    command = [shell, "-f", "-c", f"{script}\n{ask}"] if shell == "zsh" else [shell, "-c", f"{script}\n{ask}"]
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path), "TERM": "xterm"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)

    assert ("_gristmill: function" if shell == "zsh" else "touch") in done.stdout
    assert not (tmp_path / "ran").exists()


def test_an_unknown_shell_is_refused_with_the_nearest(monkeypatch):
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert CliRunner().invoke(app, ["completion"]).output.startswith("#compdef gristmill")
    result = CliRunner().invoke(app, ["completion", "zhs"])
    assert "expected a shell (bash, zsh, fish); got 'zhs'; did you mean 'zsh'?" in str(result.exception)
