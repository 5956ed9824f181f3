"""Models of the hub in a pipeline: downloaded once, before any worker starts; without the network not asked for."""

import json
import pickle
import socket
import time

import pytest
from tests import hub_double
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, MissingDependency, ResumeRefused
from gristmill.models import weights
from gristmill.pipeline import Pipeline
from gristmill.stages.text.classifiers import AegisClassifier, DistributedDataClassifier, QualityClassifier
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.testing.tiny_models import write_tiny_classifier

QUALITY = "nvidia/quality-classifier-deberta"


@pytest.fixture(autouse=True)
def _own_hub_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    for name in ("GRISTMILL_OFFLINE", "HF_HUB_OFFLINE", "HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(weights, "_token", None)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = write_tiny_classifier(tmp_path_factory.mktemp("published"))
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def pipeline(work, *stages):
    if not (work / "in").exists():
        write_documents(work / "in" / "a.jsonl", [{"text": "good news"}, {"text": None}, {"text": "bad page"}])
    return Pipeline("p", stages=[JsonlReader(str(work / "in")), *stages, JsonlWriter(str(work / "out"))])


@pytest.mark.slow
def test_a_model_is_downloaded_once_before_workers_start_and_found_there_again(tmp_path, files, monkeypatch):
    with hub_double.running({QUALITY: dict(files)}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        result = pipeline(tmp_path, QualityClassifier()).run(LocalExecutor(num_workers=4), quiet=True)
        first = contents(tmp_path / "out")
        asked, given = hub.asked.total(), hub.given.total()
        again = pipeline(tmp_path, QualityClassifier()).run(LocalExecutor(num_workers=0), fresh=True, quiet=True)

    assert (result.written, again.written) == (3, 3)
    assert set(hub.given.values()) == {1}
    assert "model.onnx" in hub.given
    assert (hub.asked.total(), hub.given.total()) == (asked, given)
    assert contents(tmp_path / "out") == first
    assert [document["quality_pred"] is None for document in read_documents(tmp_path / "out")] == [False, True, False]


def test_a_plan_names_the_revision_and_downloads_nothing(tmp_path, files, monkeypatch):
    with hub_double.running({QUALITY: dict(files)}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        plan = pipeline(tmp_path, QualityClassifier()).plan(LocalExecutor(num_workers=1))
        configs = {name: json.loads(config) for name, config in plan.stage_configs}

    assert not hub.given
    assert len(configs["quality_classifier_model"]["revision"]) == 40


def test_a_token_is_in_no_plan_and_in_no_pickle(tmp_path, files, monkeypatch):
    stage = QualityClassifier(hf_token="hf_verysecrettoken", model_path=None)
    with hub_double.running({QUALITY: dict(files)}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        plan = pipeline(tmp_path, stage).plan(LocalExecutor(num_workers=1))

    assert "verysecret" not in repr(plan.stage_configs) + repr(stage) + plan.describe()
    assert b"verysecret" not in pickle.dumps([group.stages for group in plan.groups])


def test_with_local_weights_the_network_is_not_used(tmp_path, monkeypatch, no_network):
    monkeypatch.setenv("GRISTMILL_OFFLINE", "1")
    model = str(write_tiny_classifier(tmp_path / "model"))
    result = pipeline(tmp_path, QualityClassifier(model_path=model)).run(LocalExecutor(num_workers=0), quiet=True)

    assert result.written == 3


@pytest.mark.parametrize("stage", [QualityClassifier, AegisClassifier])
def test_without_weights_and_network_it_is_said_at_once_with_the_command_that_helps(stage, tmp_path, no_network):
    started = time.monotonic()
    with pytest.raises(ConfigError, match=r"gristmill models fetch \S+ --to DIR; then model_path=DIR") as caught:
        pipeline(tmp_path, stage(offline=True)).run(LocalExecutor(num_workers=2), quiet=True)

    assert time.monotonic() - started < 5  # on a busy machine; no worker was started
    assert str(caught.value).startswith(f"{stage.__name__}: expected the weights of")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ({"tokenizers"}, r"^QualityClassifier needs tokenizers. Install: pip install 'gristmill\[models\]'$"),
        ({"onnxruntime", "torch"}, r"^QualityClassifier needs onnxruntime or torch; neither is installed."),
    ],
)
def test_a_missing_package_is_named_with_the_command(lacking, message, tmp_path, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    for module in ("importlib.util.find_spec", "gristmill.stages.text.models.files.find_spec"):
        monkeypatch.setattr(module, lambda name, *more: None if name in lacking else find(name, *more))
    model = str(write_tiny_classifier(tmp_path / "model"))

    with pytest.raises(MissingDependency, match=message):
        pipeline(tmp_path, QualityClassifier(model_path=model)).plan(LocalExecutor(num_workers=1))


def test_a_run_is_not_resumed_with_another_model_in_the_same_directory(tmp_path):
    model = write_tiny_classifier(tmp_path / "model", labels=["a", "b"])
    stage = DistributedDataClassifier(model_identifier=str(model))
    pipeline(tmp_path, stage).run(LocalExecutor(num_workers=0), quiet=True)
    pipeline(tmp_path, stage).run(LocalExecutor(num_workers=0), quiet=True)  # finished: nothing to do
    write_tiny_classifier(tmp_path / "model", labels=["a", "b", "c"])

    with pytest.raises(ResumeRefused):
        pipeline(tmp_path, stage).run(LocalExecutor(num_workers=0), quiet=True)
