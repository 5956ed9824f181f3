"""The examples run as they stand."""

import re
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


def test_the_demo_shows_what_was_dropped_replaced_and_broken(tmp_path):
    done = run(EXAMPLES / "demo" / "run_demo.py", tmp_path / "out")

    assert done.returncode == 0, done.stderr
    assert "by language: fast_text_lang_id, wanted 0.65 ≤ score and language = en" in done.stdout
    assert "by decontaminate: history" in done.stdout
    assert re.search(r"by exact_deduplication: exact_duplicate of [a-z0-9]+-\d{4}\n    [A-Z]", done.stdout)
    assert re.search(r"by fuzzy_deduplication: fuzzy_duplicate of [a-z0-9]+-\d{4}\n    [A-Z]", done.stdout)
    assert re.search(r"Write to <EMAIL_ADDRESS> and we will", done.stdout)
    assert re.search(r"archive.jsonl.gz, line \d+", done.stdout)
    assert "documents read" in done.stderr


def test_the_corpus_of_the_demo_is_the_same_bytes_every_time(tmp_path):
    for name in ("a", "b"):
        run(EXAMPLES / "demo" / "make_corpus.py", tmp_path / name)
    first, second = ({f.name: f.read_bytes() for f in (tmp_path / d).rglob("*.jsonl*")} for d in ("a", "b"))

    assert len(first) == 5
    assert first == second


def test_the_quickstart_prints_its_books(tmp_path):
    run(EXAMPLES / "demo" / "make_corpus.py", tmp_path / "made")
    done = run(EXAMPLES / "quickstart.py", tmp_path / "made" / "raw", tmp_path / "clean")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("read 498, kept 4")
