"""Training gives the same model from the same documents, tells how good it is, and leaves nothing half done."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.classifier_corpus import documents, write_classes

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, NoInputError
from gristmill.kernels.calibration import auc, expected_error
from gristmill.stages.text.quality import ApplyClassifier
from gristmill.stages.text.quality.model_card import read_card
from gristmill.tasks import DocumentBatch
from gristmill.workflows.training import TrainClassifierWorkflow
from gristmill.workflows.training.examples import PARTS, Examples, TakeExamples
from gristmill.workflows.training.train_classifier import in_words

INLINE = {"executor": LocalExecutor(num_workers=0), "quiet": True}


def train(positive, negative, output, **options):
    return TrainClassifierWorkflow(positive, negative, str(output), **options).run(**INLINE)


def files_of(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    directory = tmp_path_factory.mktemp("corpus")
    return directory, write_classes(directory, documents(4000), source=lambda n: n // 40)


@pytest.fixture(scope="module")
def trained(corpus):
    directory, (positive, negative) = corpus
    train(positive, negative, directory / "model")
    return directory / "model"


@pytest.fixture(scope="module")
def card(trained):
    return json.loads((trained / "card.json").read_text())


def test_twice_gives_the_same_files_byte_for_byte(corpus, trained, tmp_path):
    train(*corpus[1], tmp_path / "again")

    assert files_of(tmp_path / "again") == files_of(trained)
    assert sorted(files_of(trained)) == ["card.json", "model.bin", "rows.jsonl"]


def test_the_model_does_not_depend_on_files_order_or_workers(corpus, trained, tmp_path):
    for name, source in zip(("positive", "negative"), corpus[1], strict=True):
        (tmp_path / name).mkdir()
        lines = (corpus[0] / name / "a.jsonl").read_text().splitlines(keepends=True)[::-1]
        for part in range(3):
            (tmp_path / name / f"{2 - part}.jsonl").write_text("".join(lines[part::3]))
        assert source.endswith(name)
    workflow = TrainClassifierWorkflow(str(tmp_path / "positive"), str(tmp_path / "negative"), str(tmp_path / "model"))
    workflow.run(LocalExecutor(num_workers=2), quiet=True)
    expected, found = files_of(trained), files_of(tmp_path / "model")

    assert found["model.bin"] == expected["model.bin"]
    assert found["rows.jsonl"] == expected["rows.jsonl"]


def test_another_seed_is_another_model_and_another_split(corpus, trained, card, tmp_path):
    train(*corpus[1], tmp_path / "other", seed=7)
    other = json.loads((tmp_path / "other" / "card.json").read_text())

    assert (tmp_path / "other" / "model.bin").read_bytes() != (trained / "model.bin").read_bytes()
    assert other["data"] == card["data"]  # the same documents
    assert other["parts"] != card["parts"]


def test_the_card_tells_how_good_the_model_is(card):
    area, error = card["auc"], card["calibration_error"]

    assert 0.8 < area["low"] < area["value"] < area["high"] < 1
    assert (area["confidence"], area["rounds"]) == (0.95, 1000)
    assert error["after"] < error["before"] / 2
    assert list(card["thresholds"]) == ["precision 0.9", "keep 0.1"]
    assert card["thresholds"]["keep 0.1"]["kept"] == pytest.approx(0.1, abs=0.02)
    assert card["score_quantiles"]["0.1"] < card["score_quantiles"]["0.5"] < card["score_quantiles"]["0.9"]
    assert card["reproducible"] is True


def test_the_card_counts_every_document(card):
    for name in ("positive", "negative"):
        parts = [card["parts"][part][name] for part in PARTS]
        assert sum(parts) == card["data"][name]["documents"] == 2000
        assert parts[0] == pytest.approx(1600, abs=80)
        assert parts[1] == pytest.approx(200, abs=60)


def test_the_kept_rows_get_the_scores_of_the_card(trained):
    rows = [json.loads(line) for line in (trained / "rows.jsonl").read_text().splitlines()]
    scores = ApplyClassifier(str(trained)).score_documents([row["text"] for row in rows])

    assert len(rows) == 50
    assert {row["label"] for row in rows} == {"positive", "negative"}
    assert scores == [row["score"] for row in rows]


def test_the_reported_area_is_that_of_documents_the_model_has_not_seen(trained, card):
    fresh = documents(3000, seed=99)
    scores = np.array(ApplyClassifier(str(trained)).score_documents([text for text, _ in fresh]))
    positive = np.array([flag for _, flag in fresh])

    assert auc(scores, positive) == pytest.approx(card["auc"]["value"], abs=0.06)
    assert expected_error(scores, positive) < card["calibration_error"]["before"]


def sides_of(rows, **options):
    """Which part each text is in."""
    stage = TakeExamples("text", options.get("group_by"), options.get("seed", 42))
    batch = DocumentBatch("b", pa.Table.from_pylist(rows))
    return stage.process(batch).to_pyarrow()["side"].to_pylist()


def test_figures_and_rows_are_of_documents_used_for_nothing_else(trained, card):
    rows = documents(4000)
    places = np.array(sides_of([{"text": text} for text, _ in rows]), float) / 2**64
    judged = (places >= 0.1) & (places < 0.2)  # the first tenth is calibrated on
    texts = [text for (text, _), own in zip(rows, judged, strict=True) if own]
    positive = np.array([flag for _, flag in rows])[judged]
    scores = np.array(ApplyClassifier(str(trained)).score_documents(texts))
    kept = [json.loads(line)["text"] for line in (trained / "rows.jsonl").read_text().splitlines()]

    assert len(texts) == sum(card["parts"]["report"].values())
    assert auc(scores, positive) == pytest.approx(card["auc"]["value"], abs=1e-6)
    assert expected_error(scores, positive) == pytest.approx(card["calibration_error"]["after"], abs=1e-6)
    assert set(kept) <= set(texts)


def test_copies_are_on_the_same_side_of_the_split():
    rows = [{"text": f"{word} and some more"} for word in "abcdefgh" for _ in range(3)]
    sides = sides_of(rows)

    assert all(len(set(sides[at : at + 3])) == 1 for at in range(0, 24, 3))
    assert len(set(sides)) == 8


def test_copies_in_all_but_case_spaces_and_punctuation_are_too():
    sides = sides_of([{"text": text} for text in ("Some words, here.", "some  WORDS here", "sóme words\nhere!")])

    assert len(set(sides)) == 1


def test_documents_of_a_group_are_on_the_same_side():
    rows = [{"text": f"text {n}", "source": source} for n, source in enumerate(["a", "a", "b", None, None])]
    sides = sides_of(rows, group_by="source")

    assert sides[0] == sides[1] != sides[2]
    assert len(set(sides)) == 4  # without a group, the text decides


def test_exact_copies_never_lie_on_both_sides_of_a_real_split(tmp_path):
    rows = documents(600, seed=3, words=12)
    copied = [row for row in rows for _ in range(2)] + [(text, not flag) for text, flag in rows[:40]]
    paths = write_classes(tmp_path, copied)
    seen = {}
    original = Examples.texts

    def watched(self, wanted):
        for numbers, texts in original(self, wanted):
            for place, number in enumerate(numbers.tolist()):
                text = texts.data[texts.starts[place] : texts.stops[place]].tobytes()
                seen.setdefault(text, set()).add(int(self.part[number]))
            yield numbers, texts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Examples, "texts", watched)
        result = train(*paths, tmp_path / "model")

    assert len(seen) == 600
    assert {len(parts) for parts in seen.values()} == {1}
    assert set().union(*seen.values()) == {0, 1, 2}
    assert result.metadata["card"]["in_both_classes"] == 40


def test_several_threads_are_allowed_and_told(corpus, tmp_path):
    result = train(*corpus[1], tmp_path / "model", threads=2)

    assert result.metadata["card"]["reproducible"] is False
    assert "training again gives another model" in str(result)
    assert result.metadata["card"]["auc"]["value"] > 0.8


def test_documents_without_text_are_left_out_and_counted(tmp_path):
    positive, negative = write_classes(tmp_path, documents(600))
    with (tmp_path / "positive" / "a.jsonl").open("a") as file:
        file.write('{"text": null}\n{"text": ""}\n{"text": " \\u00a0\\n"}\n{"id": "none"}\n')
    card = train(positive, negative, tmp_path / "model").metadata["card"]

    assert card["data"]["positive"]["without_text"] == 4
    assert card["data"]["positive"]["documents"] == 300


def test_few_documents_to_calibrate_on_are_told(tmp_path, trained, card):
    few = train(*write_classes(tmp_path, documents(600)), tmp_path / "model", seed=-1)
    number = sum(few.metadata["card"]["parts"]["calibration"].values())

    assert f"scores are rough: only {number} documents to calibrate on" in str(few)
    assert "rough" not in in_words(read_card(trained, who="test"), trained)


def test_parquet_is_read_too(corpus, trained, tmp_path):
    for name in ("positive", "negative"):
        rows = [json.loads(line) for line in (corpus[0] / name / "a.jsonl").read_text().splitlines()]
        (tmp_path / name).mkdir()
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name / "a.parquet")
    paths = str(tmp_path / "positive"), str(tmp_path / "negative")
    train(*paths, tmp_path / "model", input_filetype="parquet")

    assert (tmp_path / "model" / "model.bin").read_bytes() == (trained / "model.bin").read_bytes()


def test_a_line_that_cannot_be_read_is_told(tmp_path):
    positive, negative = write_classes(tmp_path, documents(600))
    with (tmp_path / "negative" / "a.jsonl").open("a") as file:
        file.write('{"text": "cut\n')
    result = train(positive, negative, tmp_path / "model")

    assert result.metadata["card"]["data"]["negative"]["quarantined"] == 1
    assert "could not be processed" in str(result)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "fastext"}, "kind to be one of .* did you mean 'fasttext'"),
        ({"holdout": 1.0}, "expected 0 < holdout < 1; got 1.0"),
        ({"threads": 0}, "expected threads ≥ 1; got 0"),
        ({"text_field": "txt"}, "expected a column 'txt' in the documents of --positive; .* did you mean 'text'"),
        ({"group_by": "sorce"}, "expected a column 'sorce' .* did you mean 'source'"),
        ({"group_by": "text"}, "expected group_by to be another column than the text"),
        ({"input_filetype": "json"}, "expected input_filetype to be one of .* did you mean 'jsonl'"),
        ({"embedder": "x"}, "expected no embedder for kind 'fasttext'"),
    ],
    ids=["kind", "holdout", "threads", "column", "group", "group-is-text", "type", "embedder"],
)
def test_a_mistake_is_told_before_anything_is_read(corpus, tmp_path, options, said):
    with pytest.raises(ConfigError, match=said):
        train(*corpus[1], tmp_path / "model", **options)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_class_is_refused(corpus, tmp_path):
    (tmp_path / "none").mkdir()
    with pytest.raises(NoInputError, match="none"):
        train(str(tmp_path / "none"), corpus[1][1], tmp_path / "model")
    (tmp_path / "none" / "a.jsonl").write_text("")
    with pytest.raises(ConfigError, match=r"below --positive .* got 0 documents and none with a text"):
        train(str(tmp_path / "none"), corpus[1][1], tmp_path / "model")
    (tmp_path / "none" / "a.jsonl").write_text('{"text": ""}\n')
    with pytest.raises(ConfigError, match="got 1 documents and none with a text"):
        train(str(tmp_path / "none"), corpus[1][1], tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["none"]


def test_too_few_documents_for_all_parts_are_refused_with_the_counts(tmp_path):
    with pytest.raises(ConfigError, match=r"expected documents of both classes to train, .* got no"):
        train(*write_classes(tmp_path, documents(6)), tmp_path / "model")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["negative", "positive"]


def test_a_directory_that_is_there_is_left_alone(corpus, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine").write_text("x")
    with pytest.raises(ConfigError, match=r"expected nothing at .*model' yet; it exists"):
        train(*corpus[1], tmp_path / "model")
    assert (tmp_path / "model" / "mine").read_text() == "x"


def test_what_a_killed_training_has_left_is_cleared(corpus, trained, tmp_path):
    left = tmp_path / ".model.training"
    (left / "model").mkdir(parents=True)
    (left / "model" / "card.json").write_text("half")
    (left / "texts" / "positive").mkdir(parents=True)
    shutil.copy(corpus[0] / "positive" / "a.jsonl", left / "texts" / "positive" / "a.arrow")
    train(*corpus[1], tmp_path / "model")

    assert files_of(tmp_path / "model") == files_of(trained)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
