"""`gristmill train-classifier` on the command line."""

import json
import subprocess
import sys

import pytest
from tests.classifier_corpus import documents, write_classes

GRISTMILL = [sys.executable, "-c", "from gristmill.cli.main import main; main()"]


def run(*arguments, cwd):
    return subprocess.run([*GRISTMILL, *arguments], capture_output=True, text=True, check=False, cwd=cwd)


@pytest.mark.e2e
@pytest.mark.slow
def test_it_trains_applies_and_tries_thresholds(tmp_path):
    write_classes(tmp_path, documents(800))
    done = run(
        "train-classifier", "--positive", "positive", "--negative", "negative", "-o", "model", "--json", cwd=tmp_path
    )
    answer = json.loads(done.stdout)

    assert done.returncode == 0, done.stderr
    assert answer["card"]["parts"]["train"]["positive"] > 250
    assert "area under the curve" in done.stderr

    recipe = """
name: keep_good
stages:
  - JsonlReader: {file_paths: "${input}"}
  - ScoreFilter: {filter_obj: {ApplyClassifier: {model: model, min_score: 0.5}}}
  - JsonlWriter: {path: "${output}"}
"""
    (tmp_path / "recipe.yaml").write_text(recipe)
    ran = run("run", "recipe.yaml", "-i", "positive", "-o", "kept", "--json", cwd=tmp_path)
    scored = run("score", "recipe.yaml", "-i", "positive", "-o", "scored", cwd=tmp_path)
    tried = [
        json.loads(run("rethreshold", "recipe.yaml", "scored", *more, "--json", cwd=tmp_path).stdout)
        for more in ([], ["--set", "apply_classifier_model_model.min_score=0.9"])
    ]

    assert (ran.returncode, scored.returncode) == (0, 0), ran.stderr + scored.stderr
    assert tried[0]["kept"] == json.loads(ran.stdout)["written"]
    assert tried[1]["kept"] < tried[0]["kept"]


@pytest.mark.e2e
@pytest.mark.slow
def test_a_wrong_directory_is_a_user_mistake(tmp_path):
    write_classes(tmp_path, documents(4))
    done = run("train-classifier", "--positive", "positiv", "--negative", "negative", "-o", "model", cwd=tmp_path)

    assert done.returncode == 2
    assert "positiv" in done.stderr
    assert not (tmp_path / "model").exists()
