"""`gristmill explain`: the pipeline comes from the recipe a run has left, and duplicates from what was found then."""

import json

import pytest
from typer.testing import CliRunner

from gristmill.backends.local import LocalExecutor
from gristmill.cli.main import app
from gristmill.config.recipe import Recipe
from gristmill.errors import ConfigError

RECIPE = """
name: small
stages:
  - JsonlReader: {file_paths: "${input}"}
  - ScoreFilter: {filter_obj: {WordCountFilter: {min_words: 4}}}
  - JsonlWriter: {path: "${output}"}
"""


def gristmill(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


@pytest.fixture
def home(tmp_path):
    """A finished run of a recipe, which has left the recipe in its directory."""
    (tmp_path / "in").mkdir()
    lines = ['{"id": "long", "text": "a b c d e f"}', '{"id": "short", "text": "a b"}']
    (tmp_path / "in" / "a.jsonl").write_text("\n".join(lines))
    values = {"input": str(tmp_path / "in"), "output": str(tmp_path / "out")}
    Recipe.parse(RECIPE, source="here").build(values).run(LocalExecutor(num_workers=0), quiet=True)
    return tmp_path


def test_a_document_is_run_again_as_the_recipe_says(home):
    told = gristmill("explain", home / "out", "short")

    assert told.startswith("short: dropped by word_count: word_count\n")
    assert "  FAIL word_count  2   4 ≤ words ≤ 100000   (2 outside)" in told
    assert "DISAGREE" not in told
    assert "no pipeline" not in told


def test_the_same_as_json(home):
    told = json.loads(gristmill("explain", home / "out", "--source", f"{home}/in/a.jsonl:1", "--json"))

    assert told["verdict"] == "kept"
    assert [passage["stage"] for passage in told["passages"]] == ["word_count", "jsonl_writer"]
    assert told["passages"][0]["checks"] == [
        {"rule": "word_count", "value": 6, "threshold": "4 ≤ words ≤ 100000", "distance": 2, "keeps": True}
    ]


def test_who_is_meant_has_to_be_said(home):
    with pytest.raises(ConfigError, match="expected the id of a document, or --source FILE:LINE; got neither"):
        gristmill("explain", home / "out")


def test_a_directory_without_a_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"expected the directory of a run \(with header.json in it\)"):
        gristmill("explain", tmp_path, "x")


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False], ids=["by a column", "by its place"])
def test_a_duplicate_names_the_document_it_lost_to(tmp_path, named):
    (tmp_path / "in").mkdir()
    texts = [{"id": "first", "text": "the same"}, {"id": "other", "text": "else"}, {"id": "second", "text": "the same"}]
    (tmp_path / "in" / "a.jsonl").write_text("broken\n" + "".join(json.dumps(text) + "\n" for text in texts))
    options = ["--id-field", "id"] if named else []
    gristmill("dedup", "exact", "-i", tmp_path / "in", "-o", tmp_path / "out", "--workers", 0, "-q", *options)
    lost, kept = (gristmill("explain", tmp_path / "out", name) for name in ("second", "first"))

    assert lost.startswith("second: removed as a duplicate of first")
    assert "lost to     first" in lost
    assert "(1.000 alike)" in lost
    assert kept.startswith("first: in the output")


def test_a_run_that_starts_over_without_a_recipe_leaves_none_of_the_earlier_one(home):
    kept = home / "out" / ".gristmill" / "recipe.yaml"
    assert "min_words: 4" in kept.read_text()

    recipe = Recipe.parse(kept.read_text(), source="kept")
    pipeline = recipe.build()
    pipeline.recipe = ""
    pipeline.run(LocalExecutor(num_workers=0), fresh=True, quiet=True)
    assert not kept.exists()
