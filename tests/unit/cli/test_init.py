"""`gristmill init` gives something that runs, and replaces nothing."""

import pytest
from typer.testing import CliRunner

from gristmill.cli.init import next_steps
from gristmill.cli.main import app
from gristmill.config.run import create_pipeline_from_yaml


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_what_it_writes_runs_and_shows_each_kind_of_ending(here):
    assert CliRunner().invoke(app, ["init"]).exit_code == 0
    result = create_pipeline_from_yaml("recipe.yaml", input="data", output="clean").run()

    assert (result.read, result.written, result.quarantined) == (12, 7, 1)
    assert sorted(result.dropped) == ["exact_deduplication", "repeated_lines", "symbols_to_words", "word_count"]
    kept = "".join(path.read_text(encoding="utf-8") for path in (here / "clean").glob("*.jsonl"))
    assert "café" in kept
    assert "<EMAIL_ADDRESS>" in kept


@pytest.mark.parametrize("there", ["recipe.yaml", "data/sample.jsonl"])
def test_nothing_is_replaced_and_nothing_half_written(here, there):
    (here / there).parent.mkdir(exist_ok=True)
    (here / there).write_text("mine")
    result = CliRunner().invoke(app, ["init", "."])

    assert f"got {there}. Nothing was written" in str(result.exception)
    assert (here / there).read_text() == "mine"
    assert [path for path in here.rglob("*") if path.is_file()] == [here / there]


def test_a_file_in_place_of_the_directory_is_refused(here):
    (here / "file").touch()
    assert "file, which is a file" in str(CliRunner().invoke(app, ["init", "file"]).exception)


def test_a_shipped_recipe_may_be_the_start(here):
    assert CliRunner().invoke(app, ["init", "new/place", "--recipe", "basic_english"]).exit_code == 0
    assert "name: basic-english" in (here / "new" / "place" / "recipe.yaml").read_text()


def test_the_next_steps_can_be_copied_whatever_the_directory_is_called(tmp_path):
    assert f"gristmill explain '{tmp_path}/my dir/clean' short" in next_steps(tmp_path / "my dir")
