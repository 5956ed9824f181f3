"""The examples run as they stand."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def run(*arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )


def test_the_demo_shows_rejects_and_broken_lines(tmp_path):
    done = run(EXAMPLES / "demo" / "run_demo.py", tmp_path / "out")

    assert done.returncode == 0, done.stderr
    assert "wanted 50 ≤ words ≤ 100000" in done.stdout
    assert "books.jsonl.gz, line " in done.stdout
    assert "documents read" in done.stderr


def test_the_corpus_of_the_demo_is_the_same_bytes_every_time(tmp_path):
    for name in ("a", "b"):
        run(EXAMPLES / "demo" / "make_corpus.py", tmp_path / name)
    first, second = ({f.name: f.read_bytes() for f in (tmp_path / d).rglob("*.jsonl*")} for d in ("a", "b"))

    assert len(first) == 4
    assert first == second


def test_the_quickstart_prints_its_books(tmp_path):
    run(EXAMPLES / "demo" / "make_corpus.py", tmp_path / "raw")
    done = run(EXAMPLES / "quickstart.py", tmp_path / "raw", tmp_path / "clean")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("read 28")
