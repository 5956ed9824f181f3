"""YAML files written for Hydra run as they are, with the package name changed; what they would lose is refused."""

import subprocess
import sys

import pytest
from tests.jsonl_files import read_documents, write_documents

from gristmill.config.recipe import Recipe
from gristmill.config.run import create_pipeline_from_yaml, main
from gristmill.errors import ConfigError

pytestmark = pytest.mark.slow

FILE = """
defaults:
  - _self_
  - override hydra/job_logging: disabled
documentation: |
  Keeps documents of at least two words.
hydra:
  run: {dir: .}
input_path: ???
output_path: ${root}/kept
root: ???
text_field: text
limits: {words: 2}
stages:
  - _target_: gristmill.stages.text.io.reader.JsonlReader
    file_paths: ${input_path}
    fields: null
  - _target_: gristmill.stages.text.filters.ScoreFilter
    filter_obj:
      _target_: gristmill.stages.text.filters.heuristic.WordCountFilter
      min_words: ${limits.words}
    text_field: ${text_field}
  - _target_: gristmill.stages.text.io.writer.JsonlWriter
    path: ${output_path}
"""
WORKFLOW = """
input_path: ???
workflow:
  - _target_: gristmill.stages.deduplication.exact.workflow.ExactDeduplicationWorkflow
    input_path: ${input_path}
    output_path: ${output_path}
    input_filetype: jsonl
    perform_removal: false
"""


@pytest.fixture
def raw(tmp_path):
    write_documents(tmp_path / "raw" / "part.jsonl", [{"id": str(n), "text": "word " * n} for n in range(4)])
    (tmp_path / "curate.yaml").write_text(FILE)
    return tmp_path


def test_the_command_of_other_scripts_runs_a_file(raw):
    command = [sys.executable, "-m", "gristmill.config.run", f"--config-path={raw}", "--config-name=curate"]
    subprocess.run([*command, f"input_path={raw / 'raw'}", f"++root={raw}"], check=True, timeout=60)

    assert [document["id"] for document in read_documents(raw / "kept")] == ["2", "3"]


def test_a_missing_file_and_a_missing_value_are_refused_in_words(raw, capsys):
    assert main([f"--config-path={raw}", "--config-name=other"]) == 2
    assert main([f"--config-path={raw}", "--config-name=curate", f"root={raw}"]) == 2
    said = capsys.readouterr().err
    assert "other.yaml' is not one" in said
    assert "expected a value for ${input_path}; it is not set" in said


def test_other_files_that_would_be_merged_in_are_refused():
    with pytest.raises(ConfigError, match=r"expected 'defaults' to name this file only \(_self_\); got \['base'\]"):
        Recipe.parse(FILE.replace("- _self_", "- base"), source="x.yaml")


def test_an_unknown_key_stays_an_error_in_a_recipe_of_our_own():
    with pytest.raises(ConfigError, match=r"got 'stage'; did you mean 'stages'\?$"):
        Recipe.parse("stages: [JsonlReader]\nstage: x", source="x.yaml")


def test_a_workflow_of_a_file_is_run(raw):
    (raw / "dedup.yaml").write_text(WORKFLOW)
    assert main(["-cp", str(raw), "-cn", "dedup", f"input_path={raw / 'raw'}", f"output_path={raw / 'found'}"]) == 0
    assert list((raw / "found").rglob("*.parquet"))


def test_nothing_but_workflows_can_be_named_as_one(raw, capsys):
    (raw / "dedup.yaml").write_text("workflow: {_target_: gristmill.stages.base.ProcessingStage}")
    assert main(["-cp", str(raw), "-cn", "dedup"]) == 2
    assert "expected a gristmill workflow" in capsys.readouterr().err


def test_defaults_may_use_each_other_but_not_in_a_circle():
    text = "stages: [{_target_: gristmill.stages.text.io.reader.JsonlReader, file_paths: '${a}'}]\na: ${b}/x\nb: ${c}\n"
    recipe = Recipe.parse(f"{text}c: y", source="x.yaml")
    assert recipe.substituted()[0]["file_paths"] == "y/x"
    with pytest.raises(ConfigError, match=r"expected defaults that do not depend on each other; got a, b, c$"):
        Recipe.parse(f"{text}c: ${{a}}", source="x.yaml").substituted()


def test_a_mapping_of_a_script_will_do(raw):
    stages = [{"_target_": "gristmill.stages.text.io.reader.JsonlReader", "file_paths": "${where}"}]
    pipeline = create_pipeline_from_yaml({"where": str(raw / "raw"), "stages": stages})
    assert pipeline.run().read == 4
