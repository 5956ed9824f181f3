"""A run directory holds the recipe it was made from, filled in and without secrets."""

import json

import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.config.recipe import Recipe

TEXT = """
name: demo
variables: {least: 2}
stages:
  - JsonlReader: {file_paths: "${input}", read_kwargs: {storage_options: {token: "${token}"}}}
  - JsonlWriter: {path: "${output}"}
"""


@pytest.fixture
def values(tmp_path):
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": "a", "text": "x"}) + "\n")
    return {"input": str(tmp_path / "in.jsonl"), "output": str(tmp_path / "out"), "token": "s3cr3t-hunter2"}


def test_the_recipe_is_kept_with_its_values_and_without_its_secrets(tmp_path, values):
    pipeline = Recipe.parse(TEXT, source="demo.yaml").build(values)
    pipeline.run(LocalExecutor(num_workers=0), quiet=True)
    text = (tmp_path / "out" / ".gristmill" / "recipe.yaml").read_text()

    assert "s3cr3t" not in text
    assert "${" not in text
    again = Recipe.parse(text, source="kept").build()
    assert again.plan().fingerprint == pipeline.plan().fingerprint


def test_a_pipeline_that_was_changed_since_has_no_recipe(values):
    pipeline = Recipe.parse(TEXT, source="demo.yaml").build(values)
    stages = list(pipeline.stages)
    assert pipeline.recipe
    pipeline.add_stage(stages[-1])
    assert not pipeline.recipe
