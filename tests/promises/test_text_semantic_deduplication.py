"""From texts to texts without paraphrases in one call: what goes means the same, and what has no text stays."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.jsonl_files import contents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, ResumeRefused
from gristmill.stages.text.deduplication.semantic import TextSemanticDeduplicationWorkflow
from gristmill.testing.tiny_models import WORDS, write_tiny_encoder, write_tiny_static

HERE = LocalExecutor(num_workers=0)
LINES = 40  # of each file


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_tiny_static(tmp_path_factory.mktemp("model"), width=32))


@pytest.fixture
def corpus(tmp_path):
    """Three files of random words; of every fourth document another one has the same words in another order."""
    rng = np.random.default_rng(11)
    documents = []
    for number in range(3 * LINES * 4 // 5):
        words = rng.choice(WORDS, 12)
        documents.append({"id": f"{number:03d}", "text": " ".join(words), "rank": number})
        if number % 4 == 0:
            shuffled = " ".join(rng.permutation(words))
            documents.append({"id": f"{number:03d}-again", "text": shuffled, "rank": 1000 + number})
    (tmp_path / "in").mkdir()
    for part in range(3):
        own = documents[part::3]
        own[2:2] = [{"id": f"null-{part}", "text": None, "rank": 0}, {"id": f"blank-{part}", "text": " ", "rank": 0}]
        write_documents(tmp_path / "in" / f"{part}.jsonl", own)
    return tmp_path / "in"


def deduplicate(corpus, out, model, *, executor=HERE, **options):
    given = {"n_clusters": 4, "eps": 0.001, "input_filetype": "jsonl", "output_filetype": "jsonl", **options}
    workflow = TextSemanticDeduplicationWorkflow(str(corpus), str(out), model_identifier=model, verbose=False, **given)
    return workflow.run(executor=executor)


def kept_ids(out):
    files = sorted((out / "deduplicated").glob("*.jsonl"))
    return [json.loads(line)["id"] for file in files for line in file.read_text().splitlines()]


def read(corpus):
    return [json.loads(line) for file in sorted(corpus.iterdir()) for line in file.read_text().splitlines()]


def test_of_each_pair_one_is_removed_and_nothing_else(corpus, tmp_path, model):
    given = read(corpus)
    result = deduplicate(corpus, tmp_path / "out", model, id_field="id")
    kept = kept_ids(tmp_path / "out")
    pairs = sum(document["id"].endswith("again") for document in given)
    rows = pq.read_table(tmp_path / "out" / "duplicates.parquet").to_pylist()

    assert result.metadata["num_documents"] == len(given)
    assert result.metadata["num_duplicates"] == pairs == len(given) - len(kept)
    assert {key.removesuffix("-again") for key in kept} == {d["id"].removesuffix("-again") for d in given}
    assert all(row["id"].removesuffix("-again") == row["kept_id"].removesuffix("-again") for row in rows)


def test_documents_without_text_stay_and_the_others_are_untouched(corpus, tmp_path, model):
    lines = {line for file in corpus.iterdir() for line in file.read_text().splitlines()}
    deduplicate(corpus, tmp_path / "out", model)
    written = [line for file in (tmp_path / "out" / "deduplicated").iterdir() for line in file.read_text().splitlines()]

    assert set(written) < lines
    assert {f"{kind}-{part}" for kind in ("null", "blank") for part in range(3)} < set(kept_ids(tmp_path / "out"))


def test_without_an_id_a_document_is_known_by_its_place(corpus, tmp_path, model):
    deduplicate(corpus, tmp_path / "out", model)
    deduplicate(corpus, tmp_path / "named", model, id_field="id")
    [row, *_] = pq.read_table(tmp_path / "out" / "duplicates.parquet").to_pylist()

    assert row["id"].partition(":")[0] in {"0", "1", "2"}
    assert len(kept_ids(tmp_path / "out")) == len(kept_ids(tmp_path / "named"))


def test_the_size_of_a_task_changes_nothing(corpus, tmp_path, model, monkeypatch):
    deduplicate(corpus, tmp_path / "whole", model)
    monkeypatch.setattr("gristmill.deduplication.text_semantic.ROWS_AT_ONCE", 1)
    deduplicate(corpus, tmp_path / "parts", model)

    assert contents(tmp_path / "whole") == contents(tmp_path / "parts")


@pytest.mark.slow
def test_workers_do_not_change_a_byte(corpus, tmp_path, model):
    deduplicate(corpus, tmp_path / "here", model)
    deduplicate(corpus, tmp_path / "out", model, executor=LocalExecutor(num_workers=4))

    assert contents(tmp_path / "here")
    assert contents(tmp_path / "out") == contents(tmp_path / "here")


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.cluster
@pytest.mark.xdist_group("ray")
def test_a_cluster_does_not_change_a_byte(corpus, tmp_path, model):
    from gristmill.backends.ray_actor_pool import RayActorPoolExecutor

    deduplicate(corpus, tmp_path / "here", model)
    deduplicate(corpus, tmp_path / "out", model, executor=RayActorPoolExecutor(show_progress=False))

    assert contents(tmp_path / "out") == contents(tmp_path / "here")


def test_what_stays_is_written_as_asked(corpus, tmp_path, model):
    options = {"output_filetype": "parquet", "output_fields": ["id"], "write_kwargs": {"compression": "gzip"}}
    deduplicate(corpus, tmp_path / "out", model, **options)
    [file, *_] = sorted((tmp_path / "out" / "deduplicated").glob("*.parquet"))

    assert pq.read_schema(file).names == ["id"]
    assert pq.read_metadata(file).row_group(0).column(0).compression == "GZIP"


def test_a_list_alone_leaves_the_documents_where_they_are(corpus, tmp_path, model):
    result = deduplicate(corpus, tmp_path / "out", model, perform_removal=False)

    assert result.metadata["num_duplicates"] > 0
    assert not (tmp_path / "out" / "deduplicated").exists()


def test_another_model_is_not_taken_for_the_one_before(corpus, tmp_path, model):
    deduplicate(corpus, tmp_path / "out", model)
    other = str(write_tiny_static(tmp_path / "other", width=8))

    with pytest.raises(ResumeRefused):
        deduplicate(corpus, tmp_path / "out", other)
    assert deduplicate(corpus, tmp_path / "out", other, clear_output=True).metadata["num_kept"] > 0


def test_texts_that_are_all_missing_all_stay(tmp_path, model):
    (tmp_path / "in").mkdir()
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": "1", "text": None}, {"id": "2", "text": ""}])
    (tmp_path / "in" / "empty.jsonl").touch()
    result = deduplicate(tmp_path / "in", tmp_path / "out", model)

    assert (result.metadata["num_documents"], result.metadata["num_kept"]) == (2, 2)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"eps": None}, "eps"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"which_to_keep": "best"}, "which_to_keep"),
        ({"use_id_generator": True, "id_field": "id"}, "id_field"),
        ({"output_filetype": "csvv"}, "output_filetype"),
        ({"text_field": "body"}, "body"),
    ],
)
def test_a_mistake_is_named_before_anything_runs(corpus, tmp_path, model, options, named):
    with pytest.raises(ConfigError, match=named):
        deduplicate(corpus, tmp_path / "out", model, **options)


def test_documents_the_model_fails_on_stay_and_shift_no_other(tmp_path):
    """A word whose token the model does not have makes ONNX Runtime fail, on that document alone."""
    model = write_tiny_encoder(tmp_path / "model")
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["click"] = 9999
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    texts = ["click", "the water", "news of science", "news of science", "click more", "good food", "good food", "oil"]
    (tmp_path / "in").mkdir()
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": f"{n}", "text": text} for n, text in enumerate(texts)])
    result = deduplicate(tmp_path / "in", tmp_path / "out", str(model), id_field="id", n_clusters=2)
    kept = kept_ids(tmp_path / "out")

    assert sorted(error.count for error in result.errors) == [2]
    assert len(kept) == 6
    assert {"0", "1", "4", "7"} < set(kept)
    assert len({"2", "3"} & set(kept)) == len({"5", "6"} & set(kept)) == 1
