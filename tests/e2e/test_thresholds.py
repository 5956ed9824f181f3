"""`gristmill score` and `gristmill rethreshold` answer on the command line."""

import json
import subprocess
import sys

import pytest

GRISTMILL = [sys.executable, "-c", "from gristmill.cli.main import main; main()"]


def run(*arguments, cwd):
    return subprocess.run([*GRISTMILL, *arguments], capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    directory = tmp_path_factory.mktemp("scored")
    lines = [json.dumps({"id": f"d{n}", "text": "the word and that one. " * n}) for n in range(20)]
    (directory / "in.jsonl").write_text("\n".join(lines) + "\n")
    done = run("score", "basic-english", "-i", "in.jsonl", "-o", "scored", "--json", cwd=directory)
    assert json.loads(done.stdout.splitlines()[-1])["written"] == 20
    return directory


@pytest.mark.slow
def test_a_higher_threshold_refuses_more(scored):
    counts = [
        json.loads(run("rethreshold", "basic-english", "scored", *more, "--json", cwd=scored).stdout)
        for more in ([], ["--set", "word_count.min_words=80"])
    ]
    refused = [outcome["rules"][0]["refused"] for outcome in counts]

    assert refused == [10, 16]
    assert counts[0]["documents"] == 20


@pytest.mark.slow
def test_it_says_in_words_where_two_recipes_differ(scored):
    said = run(
        "rethreshold", "basic-english", "scored", "--set", "word_count.min_words=80", "--against", "basic-english",
        cwd=scored,
    ).stdout  # fmt: skip

    assert "6 kept by basic-english only; basic-english as changed refuses them for word_count 6" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "answer"),
    [
        ("word_cont.min_words=3", "did you mean 'word_count'"),
        ("word_count.min_word=3", "did you mean 'min_words'"),
        ("word_count.min_words=many", "expected min_words to be a number"),
        ("min_words=3", "expected RULE.NAME=VALUE"),
    ],
)
def test_a_misspelt_threshold_is_a_user_mistake(scored, setting, answer):
    done = run("rethreshold", "basic-english", "scored", "--set", setting, cwd=scored)

    assert done.returncode == 2
    assert answer in done.stderr
