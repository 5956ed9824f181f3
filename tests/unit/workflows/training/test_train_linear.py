"""A line between vectors is trained, described and applied as words are."""

import json
import random
import shutil

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, GristmillError, MissingDependency
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.stages.text.quality import ApplyClassifier
from gristmill.tasks import DocumentBatch
from gristmill.testing.tiny_models import WORDS, write_tiny_encoder, write_tiny_static
from gristmill.workflows.training import TrainClassifierWorkflow

INLINE = LocalExecutor(num_workers=0)


def documents(count, *, seed=0):
    """Texts of words the tiny models know: more of the first half in positive ones."""
    rng = random.Random(seed)
    half = len(WORDS) // 2
    made = []
    for number in range(count):
        positive = number % 2 == 0
        own = WORDS[:half] if positive == (rng.random() > 0.1) else WORDS[half:]
        words = [rng.choice(own if rng.random() < 0.6 else WORDS) for _ in range(12)]
        made.append((" ".join(words), positive))
    return made


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    directory = tmp_path_factory.mktemp("corpus")
    for name, flag in (("positive", True), ("negative", False)):
        (directory / name).mkdir()
        lines = [json.dumps({"text": text}) for text, positive in documents(1600) if positive == flag]
        (directory / name / "a.jsonl").write_text("\n".join(lines) + "\n")
    return directory


@pytest.fixture(scope="module", params=["static", "encoder"])
def embedder(request, tmp_path_factory):
    write = write_tiny_static if request.param == "static" else write_tiny_encoder
    return str(write(tmp_path_factory.mktemp(request.param)))


def train(corpus, output, embedder, **options):
    paths = str(corpus / "positive"), str(corpus / "negative"), str(output)
    return TrainClassifierWorkflow(*paths, "linear", embedder=embedder, **options).run(INLINE, quiet=True)


@pytest.fixture(scope="module")
def model(corpus, embedder, tmp_path_factory):
    output = tmp_path_factory.mktemp("out") / "model"
    train(corpus, output, embedder)
    return output


def test_twice_gives_the_same_files(corpus, embedder, model, tmp_path):
    train(corpus, tmp_path / "again", embedder)
    files = [{path.name: path.read_bytes() for path in place.iterdir()} for place in (model, tmp_path / "again")]

    assert files[0] == files[1]
    assert sorted(files[0]) == ["card.json", "head.json", "rows.jsonl"]


def test_the_card_tells_kind_and_embedder(model, embedder):
    card = json.loads((model / "card.json").read_text())

    assert (card["kind"], card["settings"]["embedder"], card["settings"]["l2"]) == ("linear", embedder, 1.0)
    assert 0.6 < card["auc"]["low"] < card["auc"]["value"] < card["auc"]["high"]


def test_the_kept_rows_get_the_scores_of_the_card(model):
    rows = [json.loads(line) for line in (model / "rows.jsonl").read_text().splitlines()]

    assert ApplyClassifier(str(model)).score_documents([row["text"] for row in rows]) == [row["score"] for row in rows]


def test_every_document_comes_out_and_blank_ones_are_null(model):
    texts = [None, "", " \n", *(text for text, _ in documents(20, seed=3))]
    batch = ApplyClassifier(str(model)).process(DocumentBatch("b", pa.table({"text": pa.array(texts, pa.string())})))
    scores = batch.to_pyarrow()["quality"].to_pylist()

    assert batch.to_pyarrow()["text"].to_pylist() == texts
    assert [score is None for score in scores] == [True] * 3 + [False] * 20


@pytest.mark.parametrize("as_filter", [False, True], ids=["stage", "filter"])
def test_it_runs_in_a_pipeline(model, corpus, tmp_path, as_filter):
    stage = ApplyClassifier(str(model))
    stages = [
        JsonlReader(str(corpus / "positive")),
        ScoreFilter(stage) if as_filter else stage,
        JsonlWriter(str(tmp_path / "out")),
    ]
    result = Pipeline("apply", stages=stages).run(LocalExecutor(num_workers=1), quiet=True)

    assert result.read == 800
    assert (400 < result.written < 800) if as_filter else result.written == 800


def test_an_embedder_that_is_gone_is_told_while_planning(model, embedder, corpus, tmp_path):
    shutil.move(embedder, f"{embedder}-away")
    try:
        stages = [JsonlReader(str(corpus)), ApplyClassifier(str(model)), JsonlWriter(str(tmp_path / "out"))]
        with pytest.raises(ConfigError):
            Pipeline("apply", stages=stages).run(INLINE, quiet=True)
    finally:
        shutil.move(f"{embedder}-away", embedder)
    assert not (tmp_path / "out").exists()


def test_another_embedder_under_the_same_name_is_noticed(corpus, tmp_path):
    embedder = write_tiny_static(tmp_path / "embedder")
    train(corpus, tmp_path / "model", str(embedder))
    tokenizer = embedder / "tokenizer.json"
    content = json.loads(tokenizer.read_text())
    words = content["model"]["vocab"]
    a, b = WORDS[0], WORDS[-1]
    words[a], words[b] = words[b], words[a]
    tokenizer.write_text(json.dumps(content))

    with pytest.raises(GristmillError, match="of its card the score"):
        ApplyClassifier(str(tmp_path / "model")).setup()


def test_a_missing_package_is_told_with_the_command(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.models.static_model.importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match="pip install wordllama"):
        train(corpus, tmp_path / "model", None)
    assert list(tmp_path.iterdir()) == []


def test_threads_are_refused_where_they_have_no_effect(corpus, tmp_path):
    with pytest.raises(ConfigError, match="expected threads to be 1 for kind 'linear'"):
        train(corpus, tmp_path / "model", None, threads=2)
