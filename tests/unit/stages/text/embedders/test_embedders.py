"""Embeddings: as the model's files say, null where there is no text, the same bytes however they were made."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.jsonl_files import contents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, MissingDependency, ResumeRefused
from gristmill.pipeline import Pipeline
from gristmill.stages.text.classifiers import DistributedDataClassifier
from gristmill.stages.text.embedders import EmbeddingCreatorStage
from gristmill.stages.text.embedders.vllm import VLLMEmbeddingModelStage
from gristmill.stages.text.io import JsonlReader, JsonlWriter, ParquetWriter
from gristmill.tasks import DocumentBatch
from gristmill.testing.tiny_models import WORDS, write_tiny_classifier, write_tiny_encoder, write_tiny_static

TEXTS = ["the water of people", "News and science", "like him", "food " * 300, "no such wordsthere"]
EDGES = [None, "", " \n\t ", *TEXTS, "a\0b", "the\ud800".encode("utf-8", "replace").decode()]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def static(tmp_path_factory):
    return write_tiny_static(tmp_path_factory.mktemp("static"))


@pytest.fixture(scope="module", params=["encoder", "static"])
def model(request):
    return str(request.getfixturevalue(request.param))


def embed(stage, texts, **more):
    """Take texts through the parts of a composite, outside of a run; return the column and the batch."""
    batch = DocumentBatch("d", pa.table({"text": pa.array(texts, pa.string()), **more}))
    for part in stage.decompose():
        part.check_ready()
        batch = part.process(batch)
    return batch.column(stage.embedding_field), batch


def matrix(column):
    return np.array([row for row in column.to_pylist() if row is not None], np.float32)


def hidden_states(directory, text, *, max_length=128):
    """The tiny encoder by hand: tanh(vector of the token + vector of its position), see `tiny_models`."""
    chance = np.random.default_rng(0)
    tokens = chance.standard_normal((4 + len(WORDS), 16)).astype(np.float32)
    positions = chance.standard_normal((512, 16)).astype(np.float32) / 8
    vocabulary = json.loads((directory / "tokenizer.json").read_text())["model"]["vocab"]
    ids = [2, *[vocabulary.get(word, 1) for word in text.lower().split()][: max_length - 2], 3]
    return np.tanh(tokens[ids] + positions[: len(ids)])


def unit(vector):
    return vector / np.linalg.norm(vector)


def test_vectors_are_the_mean_of_the_tokens_as_the_files_say(encoder):
    found = matrix(embed(EmbeddingCreatorStage(str(encoder)), TEXTS)[0])

    expected = [unit(hidden_states(encoder, text).mean(axis=0)) for text in TEXTS]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(
    ("pooling", "expected"),
    [("mean_pooling", lambda h: h.mean(axis=0)), ("last_token", lambda h: h[-1]), ("cls", lambda h: h[0])],
)
def test_a_named_pooling_is_right_whichever_side_is_padded(encoder, pooling, expected, side):
    options = {"use_sentence_transformer": False, "embedding_pooling": pooling, "padding_side": side}
    texts = TEXTS[:1]  # alone, so that there is no padding: positions of the tiny model begin at the first column
    found = matrix(embed(EmbeddingCreatorStage(str(encoder), **options), texts)[0])

    np.testing.assert_allclose(found, [unit(expected(hidden_states(encoder, text))) for text in texts], atol=1e-5)


def test_a_static_vector_is_the_mean_of_its_words(static):
    table = np.random.default_rng(0).standard_normal((4 + len(WORDS), 16)).astype(np.float32)
    rows = [[4 + WORDS.index(word) for word in ("the", "water", "of", "people")], [4 + WORDS.index("food")] * 300]
    found = matrix(embed(EmbeddingCreatorStage(str(static)), [TEXTS[0], TEXTS[3]])[0])

    np.testing.assert_allclose(found, [unit(table[ids].mean(axis=0)) for ids in rows], atol=1e-5)


def test_every_row_comes_out_and_those_without_text_are_null(model):
    column, batch = embed(EmbeddingCreatorStage(model), EDGES, id=list(range(len(EDGES))))

    assert column.type == pa.list_(pa.float32(), 16)
    assert column.is_null().to_pylist() == [True] * 3 + [False] * (len(EDGES) - 3)
    assert batch.column("text").to_pylist() == EDGES
    assert batch.column("id").to_pylist() == list(range(len(EDGES)))
    assert batch.get_columns() == ["text", "id", "embeddings"]


@pytest.mark.parametrize("texts", [[], [None], ["", "  "]])
def test_a_batch_without_any_text_has_a_column_of_the_same_type(model, texts):
    column, _ = embed(EmbeddingCreatorStage(model), texts)

    assert column.type == pa.list_(pa.float32(), 16)
    assert column.null_count == len(texts)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_vectors_have_the_type_that_was_asked_for(model, dtype):
    column, _ = embed(EmbeddingCreatorStage(model, embedding_output_dtype=dtype), EDGES)

    assert column.type == pa.list_(pa.from_numpy_dtype(np.dtype(dtype)), 16)
    np.testing.assert_allclose(np.linalg.norm(matrix(column), axis=1), 1, atol=1e-3)


@pytest.mark.parametrize(
    ("limits", "is_seen"),
    [
        ({"max_chars": 9}, False),
        ({"max_chars": 12}, True),
        ({"max_seq_length": 4}, False),
        ({"max_seq_length": 5}, True),
    ],
)
def test_only_what_a_limit_lets_through_is_seen(encoder, limits, is_seen):
    vectors = embed(EmbeddingCreatorStage(str(encoder), **limits), ["the water of people", "the water"])[0].to_pylist()

    assert (vectors[0] != vectors[1]) is is_seen


def test_a_static_model_counts_no_special_tokens(static):
    stage = EmbeddingCreatorStage(str(static), max_seq_length=2)
    vectors = embed(stage, ["the water of people", "the water", "the"])[0].to_pylist()

    assert vectors[0] == vectors[1] != vectors[2]


def test_a_neighbour_changes_no_bit_of_a_vector(model):
    together = embed(EmbeddingCreatorStage(model), TEXTS)[0].to_pylist()
    alone = [embed(EmbeddingCreatorStage(model), [text])[0].to_pylist()[0] for text in TEXTS]

    assert together == alone


def test_stages_can_be_pickled_and_hold_no_token(model):
    stage = EmbeddingCreatorStage(model, hf_token="hf_secret")

    assert "hf_secret" not in repr(stage)
    for part in stage.decompose():
        part.check_ready()
        part.setup()
        part.teardown()
        assert type(pickle.loads(pickle.dumps(part))) is type(part)  # our own


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"embedding_pooling": "mean"}, "mean_pooling"),
        ({"embedding_output_dtype": "int8"}, "float32"),
        ({"max_chars": 0}, "max_chars"),
        ({"max_seq_length": 4096}, "max_seq_length"),
    ],
)
def test_a_wrong_option_is_named_before_anything_runs(encoder, options, named):
    with pytest.raises(ConfigError, match=named):
        embed(EmbeddingCreatorStage(str(encoder), **options), [])


def test_a_model_that_is_not_there_is_named_before_anything_runs(tmp_path):
    write_documents(tmp_path / "in.jsonl", [{"text": "the"}])
    stages = [JsonlReader(str(tmp_path / "in.jsonl")), EmbeddingCreatorStage("package:no_such_weights")]
    with pytest.raises(ConfigError, match="no_such_weights"):
        Pipeline("p", stages=stages).run(LocalExecutor(num_workers=0))


def test_a_directory_without_pooling_files_asks_for_a_pooling(encoder, tmp_path):
    for file in ("model.onnx", "config.json", "tokenizer.json"):
        (tmp_path / file).write_bytes((encoder / file).read_bytes())

    with pytest.raises(ConfigError, match="use_sentence_transformer=False"):
        embed(EmbeddingCreatorStage(str(tmp_path)), TEXTS)
    assert embed(EmbeddingCreatorStage(str(tmp_path), use_sentence_transformer=False), TEXTS)[0].null_count == 0


def test_weights_and_tokenizer_may_lie_apart(encoder, tmp_path):
    (tmp_path / "model.onnx").write_bytes((encoder / "model.onnx").read_bytes())
    apart = EmbeddingCreatorStage(str(tmp_path), tokenizer_identifier=str(encoder))

    assert embed(apart, TEXTS)[0].equals(embed(EmbeddingCreatorStage(str(encoder)), TEXTS)[0])


def test_a_missing_package_of_tables_is_told_with_the_command(monkeypatch):
    monkeypatch.setattr("gristmill.models.static_model.importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match="pip install wordllama"):
        embed(EmbeddingCreatorStage("package:wordllama"), [])


def test_a_text_of_a_million_tokens_takes_no_more_memory_than_its_tokens(static):
    [long, short] = embed(EmbeddingCreatorStage(str(static)), ["food " * 200_000, "food"])[0].to_pylist()

    np.testing.assert_allclose(long, short, atol=1e-5)


def test_a_long_text_is_taken_in_pieces_and_no_word_is_cut(static, monkeypatch):
    texts = [" ".join(np.random.default_rng(n).choice(WORDS, 40)) for n in range(3)]
    whole = embed(EmbeddingCreatorStage(str(static)), texts)[0]
    limited = embed(EmbeddingCreatorStage(str(static), max_seq_length=25), texts)[0]
    monkeypatch.setattr("gristmill.models.static_model._CHARS_AT_ONCE", 20)

    np.testing.assert_allclose(matrix(embed(EmbeddingCreatorStage(str(static)), texts)[0]), matrix(whole), atol=1e-6)
    again = embed(EmbeddingCreatorStage(str(static), max_seq_length=25), texts)[0]
    np.testing.assert_allclose(matrix(again), matrix(limited), atol=1e-6)
    assert whole.to_pylist() != limited.to_pylist()


def test_lower_case_is_the_models_own_wish(encoder, tmp_path):
    for file in ("model.onnx", "config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes((encoder / file).read_bytes())
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer | {"normalizer": None}))
    vectors = []
    for lower in (True, False):
        (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"do_lower_case": lower}))
        vectors.append(embed(EmbeddingCreatorStage(str(tmp_path)), ["NEWS", "news"])[0].to_pylist())

    assert vectors[0][0] == vectors[0][1]
    assert vectors[1][0] != vectors[1][1]


# Through a pipeline


def corpus(directory, files=4, rows=60):
    rng = np.random.default_rng(3)
    for number in range(files):
        documents = [
            {"id": f"{number}-{row}", "text": " ".join(rng.choice(WORDS, rng.integers(1, 60)))} for row in range(rows)
        ]
        documents[5]["text"], documents[7]["text"] = None, " "
        write_documents(directory / f"{number}.jsonl", documents)
    (directory / "empty.jsonl").touch()
    return str(directory)


def run(source, model, out, executor, writer=ParquetWriter):
    stages = [JsonlReader(source), EmbeddingCreatorStage(model), writer(str(out))]
    return Pipeline("embed", stages=stages).run(executor)


def test_a_pipeline_writes_every_document_with_its_vector(model, tmp_path):
    (tmp_path / "in").mkdir()
    result = run(corpus(tmp_path / "in"), model, tmp_path / "out", LocalExecutor(num_workers=0))
    table = pq.read_table(tmp_path / "out")

    assert (result.read, result.written, result.quarantined) == (240, 240, 0)
    assert table.schema.field("embeddings").type == pa.list_(pa.field("element", pa.float32()), 16)
    assert table.column("embeddings").null_count == 8


def test_two_embedders_stand_in_one_pipeline(encoder, static, tmp_path):
    write_documents(tmp_path / "in.jsonl", [{"text": "the water"}, {"text": None}])
    stages = [
        JsonlReader(str(tmp_path / "in.jsonl")),
        EmbeddingCreatorStage(str(encoder), embedding_field="mean"),
        EmbeddingCreatorStage(
            str(encoder), use_sentence_transformer=False, embedding_pooling="cls", embedding_field="cls"
        ),
        EmbeddingCreatorStage(str(static), embedding_field="static"),
        ParquetWriter(str(tmp_path / "out")),
    ]
    result = Pipeline("p", stages=stages).run(LocalExecutor(num_workers=0))
    table = pq.read_table(tmp_path / "out")

    assert result.written == 2
    assert table.column_names == ["text", "mean", "cls", "static"]
    assert len({json.dumps(table.column(name)[0].as_py()) for name in ("mean", "cls", "static")}) == 3


@pytest.mark.parametrize("order", ["CEC", "ECE"])
def test_tokens_that_are_shared_around_another_model_leave_no_column(encoder, tmp_path, order):
    classifier = str(write_tiny_classifier(tmp_path / "classifier"))
    write_documents(tmp_path / "in.jsonl", [{"text": "the water"}])
    poolings = iter(["cls", "last_token"])

    def stage(kind, number):
        if kind == "C":
            return DistributedDataClassifier(model_identifier=classifier, label_field=f"c{number}")
        options = {"use_sentence_transformer": False, "embedding_pooling": next(poolings)}
        return EmbeddingCreatorStage(str(encoder), embedding_field=f"e{number}", **options)

    stages = [stage(kind, number) for number, kind in enumerate(order)]
    stages = [JsonlReader(str(tmp_path / "in.jsonl")), *stages, ParquetWriter(str(tmp_path / "out"))]
    Pipeline("p", stages=stages).run(LocalExecutor(num_workers=0))

    expected = ["text", *(f"{kind.lower()}{number}" for number, kind in enumerate(order))]
    assert pq.read_table(tmp_path / "out").column_names == expected


@pytest.mark.parametrize("file", ["model.safetensors", "1_Pooling/config.json"])
def test_a_model_with_other_files_makes_another_plan(tmp_path, file):
    model = write_tiny_static(tmp_path / "m") if file.startswith("model") else write_tiny_encoder(tmp_path / "m")
    write_documents(tmp_path / "in.jsonl", [{"text": "the water"}])
    run(str(tmp_path / "in.jsonl"), str(model), tmp_path / "out", LocalExecutor(num_workers=0))
    content = (model / file).read_bytes()
    (model / file).write_bytes(content.replace(b"false", b"true") if file.endswith("json") else content[:-1] + b"\0")

    with pytest.raises(ResumeRefused):
        run(str(tmp_path / "in.jsonl"), str(model), tmp_path / "out", LocalExecutor(num_workers=0))


def test_json_lines_hold_vectors_too(model, tmp_path):
    (tmp_path / "in").mkdir()
    run(corpus(tmp_path / "in", files=1), model, tmp_path / "out", LocalExecutor(num_workers=0), JsonlWriter)
    [file] = (tmp_path / "out").glob("0*.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]

    assert [row["id"] for row in rows] == [f"0-{number}" for number in range(60)]
    assert {len(row["embeddings"]) for row in rows if row["embeddings"] is not None} == {16}


@pytest.mark.slow
def test_workers_change_no_byte(model, tmp_path):
    (tmp_path / "in").mkdir()
    source = corpus(tmp_path / "in")
    for workers in (1, 4):
        run(source, model, tmp_path / f"out-{workers}", LocalExecutor(num_workers=workers))

    assert contents(tmp_path / "out-1")
    assert contents(tmp_path / "out-1") == contents(tmp_path / "out-4")


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.cluster
@pytest.mark.xdist_group("ray")
def test_a_cluster_changes_no_byte(encoder, tmp_path):
    from gristmill.backends.ray_actor_pool import RayActorPoolExecutor

    (tmp_path / "in").mkdir()
    source = corpus(tmp_path / "in", files=2)
    run(source, str(encoder), tmp_path / "here", LocalExecutor(num_workers=0))
    run(source, str(encoder), tmp_path / "out", RayActorPoolExecutor(show_progress=False))

    assert contents(tmp_path / "out") == contents(tmp_path / "here")


# Where vLLM is not


def test_without_vllm_the_stage_says_so_and_gives_the_same_vectors(encoder):
    stage = VLLMEmbeddingModelStage(str(encoder))
    with pytest.warns(UserWarning, match="vLLM is not installed"):
        found, _ = embed(stage, EDGES)

    assert found.equals(embed(EmbeddingCreatorStage(str(encoder)), EDGES)[0])


def test_of_a_static_model_nobody_is_warned(static):
    assert embed(VLLMEmbeddingModelStage(str(static)), TEXTS)[0].null_count == 0


def test_columns_that_are_not_asked_for_travel_no_further(static):
    stage = VLLMEmbeddingModelStage(str(static), metadata_fields=["id"])
    _, batch = embed(stage, TEXTS, id=[1, 2, 3, 4, 5], other=["x"] * 5)

    assert batch.get_columns() == ["id", "embeddings"]


# Where vLLM is: a stand-in with its interface, since the real one wants a GPU. What it answers is not what is tested.

STAND_IN = """
from types import SimpleNamespace


class LLM:
    def __init__(self, **given):
        self.given = given
        assert given["runner"] == "pooling", given

    def embed(self, prompts, use_tqdm):
        rows = [prompt["prompt_token_ids"] for prompt in prompts]
        return [SimpleNamespace(outputs=SimpleNamespace(embedding=[float(len(row)), float(sum(row))])) for row in rows]
"""


def test_with_vllm_tokens_are_handed_to_it_and_vectors_taken_in_order(encoder, tmp_path, monkeypatch):
    (tmp_path / "vllm.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    stage = VLLMEmbeddingModelStage(str(encoder), {"max_model_len": 64}, metadata_fields=["id"])
    parts = stage.decompose()
    batch = DocumentBatch("d", pa.table({"text": pa.array(EDGES[:5], pa.string()), "id": list(range(5))}))
    for part in parts:
        batch = part.process(batch)

    assert parts[1]._vllm.given == {
        "model": str(encoder),
        "runner": "pooling",
        "disable_log_stats": True,
        "max_model_len": 64,
    }
    column = batch.column("embeddings")
    assert batch.get_columns() == ["id", "embeddings"]
    assert column.type == pa.list_(pa.float32(), 2)
    assert [row and row[0] for row in column.to_pylist()] == [None, None, None, 6.0, 5.0]  # with [CLS] and [SEP]
    monkeypatch.delitem(__import__("sys").modules, "vllm")


def test_with_vllm_a_first_batch_without_text_has_the_right_type(encoder, tmp_path, monkeypatch):
    (tmp_path / "vllm.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    column, _ = embed(VLLMEmbeddingModelStage(str(encoder)), [None, ""])

    assert column.type == pa.list_(pa.float32(), 2)
    assert column.null_count == 2
    monkeypatch.delitem(__import__("sys").modules, "vllm")
