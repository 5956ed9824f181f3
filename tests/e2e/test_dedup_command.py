"""`gristmill dedup` as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.jsonl_files import read_documents, write_documents
from tests.near_duplicates import make_corpus

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
GRISTMILL = Path(sys.executable).with_name("gristmill")


def gristmill(*arguments, expected=0):
    done = subprocess.run([GRISTMILL, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == expected, done.stderr
    return done


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_corpus(num_documents=60).write(tmp_path_factory.mktemp("dedup") / "in")


def test_fuzzy_prints_the_curve_the_clusters_and_the_result(corpus, tmp_path):
    done = gristmill(
        "dedup", "fuzzy", "-i", corpus, "-o", tmp_path / "out", "--id-field", "id", "--workers", 0, "--json"
    )
    told = json.loads(done.stdout.splitlines()[-1])
    report = json.loads((tmp_path / "out" / "report.json").read_text())

    assert "22 bands of 5" in done.stderr
    assert "largest clusters" in done.stderr
    assert told["num_duplicates"] == report["removed"] > 0
    assert told["num_kept"] == len(read_documents(tmp_path / "out" / "deduplicated"))
    assert sum(own["removed"] for own in report["sources"].values()) == report["removed"]
    assert report["cluster_sizes"] == {"2": report["removed"]}
    assert all(0.8 <= example["similarity"] < 1 for example in report["just_above"])
    assert report["just_below"]
    assert all(example["similarity"] < 0.8 for example in report["just_below"])
    assert all("[-" in difference for example in report["just_below"] for difference in example["differences"])


def test_a_dry_run_writes_no_documents(corpus, tmp_path):
    gristmill("dedup", "fuzzy", "-i", corpus, "-o", tmp_path / "out", "--dry-run", "--workers", 0)
    assert not (tmp_path / "out" / "deduplicated").exists()
    assert (tmp_path / "out" / "duplicates.parquet").exists()


def test_a_source_that_loses_much_is_named(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": f"text {i}"} for i in range(10)])
    write_documents(tmp_path / "in" / "b.jsonl", [{"text": f"text {i + 1}"} for i in range(10)])
    done = gristmill("dedup", "exact", "-i", tmp_path / "in", "-o", tmp_path / "out", "--workers", 0)
    assert "ALARM" in done.stderr
    assert "b.jsonl lost more than 50% of its documents" in done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    shares = {Path(file).name: own["share"] for file, own in report["sources"].items()}
    assert shares == {"a.jsonl": 0.0, "b.jsonl": 0.9}


def test_an_index_removes_what_was_there_before(corpus, tmp_path):
    index = ("--index", tmp_path / "index", "--id-field", "id", "--workers", 0, "--json")
    gristmill("dedup", "fuzzy", "-i", corpus, "-o", tmp_path / "first", *index)
    done = gristmill("dedup", "fuzzy", "-i", corpus, "-o", tmp_path / "second", *index)
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["num_duplicates"] == told["num_documents"]


def test_a_mistake_exits_with_2_and_says_what_is_right(corpus, tmp_path):
    done = gristmill("dedup", "exact", "-i", corpus, "-o", tmp_path / "out", "--keep", "longst", expected=2)
    assert "did you mean 'longest'" in done.stderr


def test_a_dry_run_needs_no_index_and_is_continued_by_the_run_itself(corpus, tmp_path):
    command = ("dedup", "exact", "-i", corpus, "-o", tmp_path / "out", "--index", tmp_path / "index", "--workers", 0)
    gristmill(*command, "--dry-run")
    listed = (tmp_path / "out" / "duplicates.parquet").read_bytes()
    gristmill(*command)

    assert (tmp_path / "out" / "duplicates.parquet").read_bytes() == listed
    assert read_documents(tmp_path / "out" / "deduplicated")
    assert (tmp_path / "index" / "header.json").exists()


def test_repeated_lines_are_taken_out(tmp_path):
    pages = [{"text": f"Home | About\nPage {i}"} for i in range(5)]
    write_documents(tmp_path / "in" / "a.jsonl", pages)
    done = gristmill("dedup", "parts", "-i", tmp_path / "in", "-o", tmp_path / "out", "--workers", 0, "--json")

    assert json.loads(done.stdout.splitlines()[-1])["num_parts_removed"] == 4
    assert "4 lines taken out, 5 of 5 documents left" in done.stderr
    left = [document["text"] for document in read_documents(tmp_path / "out" / "deduplicated")]
    assert left == ["Home | About\nPage 0", *(f"Page {i}" for i in range(1, 5))]


def test_a_quiet_run_prints_nothing_but_what_was_asked_for(corpus, tmp_path):
    done = gristmill(
        "dedup", "fuzzy", "-i", corpus, "-o", tmp_path / "out", "--workers", 0, "--executor", "local", "--quiet"
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_an_executor_that_does_not_exist_is_named(corpus, tmp_path):
    done = gristmill("dedup", "exact", "-i", corpus, "-o", tmp_path / "out", "--executor", "locl", expected=2)
    assert "did you mean 'local'" in done.stderr
