"""What `gristmill inspect` keeps as labels is what `gristmill train-classifier` learns from, as it is."""

import json
import subprocess
import sys

import pytest
from tests.classifier_corpus import documents

from gristmill.inspection.dataset import Dataset
from gristmill.inspection.labels import Labels


@pytest.mark.e2e
@pytest.mark.slow
def test_labels_train_a_classifier(tmp_path):
    made = documents(80)
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"id": n, "text": t}) + "\n" for n, (t, _) in enumerate(made))
    )
    labels = Labels(str(tmp_path / "labels"))
    with Dataset(str(tmp_path / "in.jsonl")) as dataset:
        for located, (_, positive) in zip(dataset.page(dataset.start, 80), made, strict=True):
            labels.put(dataset.source(located.place), located.row.values, "good" if positive else "bad")
    command = [sys.executable, "-c", "from gristmill.cli.main import main; main()", "train-classifier"]
    options = ["--positive", "labels/good.jsonl", "--negative", "labels/bad.jsonl", "-o", "model", "--workers", "0"]
    done = subprocess.run(
        [*command, *options, "--json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    parts = json.loads(done.stdout)["card"]["parts"]
    assert sum(part["positive"] for part in parts.values()) == 40
    assert sum(part["negative"] for part in parts.values()) == 40
