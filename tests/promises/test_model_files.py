"""Models and the network: nothing is asked of it unless it may be, once per machine, and no token is written down."""

import json
import os
import subprocess
import sys

import cloudpickle
import pytest
from tests import hub_double
from tests.jsonl_files import read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.models import weights
from gristmill.pipeline import Pipeline
from gristmill.stages.text.classifiers import AegisClassifier, QualityClassifier
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.testing.tiny_models import write_tiny_classifier, write_tiny_encoder

NAME = QualityClassifier.hub_id
TEXTS = ["the water is good", "", "click on this page for more news", "one two"]


@pytest.fixture(autouse=True)
def _own_hub_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    for name in ("GRISTMILL_OFFLINE", "HF_HUB_OFFLINE", "HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(weights, "_token", None)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    directory = write_tiny_classifier(tmp_path / "published")
    config = json.loads((directory / "config.json").read_text())
    like_deberta = {"relative_attention": True, "position_biased_input": False}
    (directory / "config.json").write_text(json.dumps(config | like_deberta))
    files = {path.name: path.read_bytes() for path in directory.iterdir()}
    with hub_double.running({NAME: files}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub


def pipeline(tmp_path, *stages):
    if not (tmp_path / "in").exists():
        write_documents(tmp_path / "in" / "a.jsonl", [{"id": str(n), "text": text} for n, text in enumerate(TEXTS)])
    return Pipeline("judge", stages=[JsonlReader(str(tmp_path / "in")), *stages, JsonlWriter(str(tmp_path / "out"))])


def test_a_plan_says_what_will_be_downloaded_and_a_run_downloads_it_once(hub, tmp_path):
    judging = pipeline(tmp_path, QualityClassifier())
    executor = LocalExecutor(num_workers=2)
    plan = judging.plan(executor)

    assert "quality_classifier_model (downloads " in plan.describe()
    assert f" MB of {NAME} to each machine)" in plan.describe()
    assert not hub.given
    judging.run(executor, quiet=True)
    labels = [document["quality_pred"] for document in read_documents(tmp_path / "out")]
    assert [label is None for label in labels] == [False, True, False, False]
    assert set(hub.given.values()) == {1}

    again = pipeline(tmp_path, QualityClassifier()).plan(executor)
    assert "downloads" not in again.describe()
    assert again.fingerprint == plan.fingerprint  # the revision was fixed before it was here


def test_another_revision_is_another_run(hub, tmp_path):
    before = pipeline(tmp_path, QualityClassifier()).plan().fingerprint
    hub.files[NAME]["config.json"] += b" "

    assert pipeline(tmp_path, QualityClassifier()).plan().fingerprint != before


def test_changed_files_in_a_directory_are_another_run(tmp_path):
    model = write_tiny_classifier(tmp_path / "model")
    before, same = (pipeline(tmp_path, QualityClassifier(model_path=str(model))).plan().fingerprint for _ in range(2))
    write_tiny_classifier(model, seed=1)

    assert before == same
    assert pipeline(tmp_path, QualityClassifier(model_path=str(model))).plan().fingerprint != before


def test_a_token_is_not_in_a_plan_nor_in_what_is_printed(hub, tmp_path):
    hub.gated.add(NAME)
    stages = [QualityClassifier(hf_token=hub_double.TOKEN), QualityClassifier(hf_token=hub_double.TOKEN, name="second")]
    judging = pipeline(tmp_path, stages[0])
    plan = judging.plan()

    pickled = cloudpickle.dumps((plan, [stage for group in plan.groups for stage in group.stages], stages))
    assert hub_double.TOKEN.encode() not in pickled
    assert hub_double.TOKEN not in repr((plan, stages, plan.describe(), plan.stage_configs))
    assert os.environ["HF_TOKEN"] == hub_double.TOKEN
    judging.run(LocalExecutor(num_workers=1), quiet=True)
    assert len(read_documents(tmp_path / "out")) == len(TEXTS)
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or hub_double.TOKEN.encode() not in path.read_bytes()


def test_access_that_has_to_be_granted_is_told_while_planning(hub, tmp_path):
    base = "meta-llama/LlamaGuard-7b"
    hub.files[base] = {"config.json": b"{}"}
    hub.gated.add(base)
    with pytest.raises(
        ConfigError, match=rf"^AegisClassifier: access to {base} is granted on its page; then set HF_TOK"
    ):
        pipeline(tmp_path, AegisClassifier(runtime="onnx")).plan()


# Every connection of every process below is refused and noted.
GUARD = """
import os, socket
_connect = socket.socket.connect
def connect(self, address):
    if self.family != socket.AF_UNIX:
        with open(os.environ["GUARD_FILE"], "a") as noted:
            noted.write(f"{address}\\n")
        raise OSError("no network here")
    return _connect(self, address)
socket.socket.connect = connect
"""
SCRIPT = """
import socket, sys
from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.classifiers import DistributedDataClassifier, FineWebEduClassifier, QualityClassifier
from gristmill.stages.text.embedders import EmbeddingCreatorStage
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter

if __name__ == "__main__":
    source, out, classifier, encoder, grade = sys.argv[1:]
    stages = [JsonlReader(source), QualityClassifier(model_path=classifier, label_field="quality"),
              DistributedDataClassifier(model_identifier=classifier), FineWebEduClassifier(model_path=grade),
              EmbeddingCreatorStage(encoder), JsonlWriter(out)]
    print(Pipeline("guarded", stages=stages).run(LocalExecutor(num_workers=2), quiet=True).written)
    try:
        socket.create_connection(("127.0.0.1", 9))
    except OSError as error:
        print(error)
"""


@pytest.mark.slow
def test_with_local_weights_nothing_is_asked_of_the_network(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": text} for text in TEXTS])
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "sitecustomize.py").write_text(GUARD)
    (tmp_path / "script.py").write_text(SCRIPT)
    models = (
        write_tiny_classifier(tmp_path / "classifier"),
        write_tiny_encoder(tmp_path / "encoder"),
        write_tiny_classifier(tmp_path / "grade", labels=("LABEL_0",)),
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "guard"), "GUARD_FILE": str(tmp_path / "noted")}
    command = [sys.executable, tmp_path / "script.py", tmp_path / "in", tmp_path / "out", *models]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**environment, "GRISTMILL_OFFLINE": "1"}
    )

    assert done.stdout.split("\n")[:2] == [str(len(TEXTS)), "no network here"], done.stderr
    assert (tmp_path / "noted").read_text().split("\n")[:-1] == ["('127.0.0.1', 9)"]  # the guard works, and was alone
