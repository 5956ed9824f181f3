"""Filters that count tokens count those of the tokenizer they are given."""

import json
import pickle

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, MissingDependency
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic.code import TokenizerFertilityFilter
from gristmill.stages.text.filters.token import TokenCountFilter
from gristmill.tasks import DocumentBatch


class Words:
    """A user's own tokenizer."""

    def encode(self, text):
        return text.split()


def test_tokens_are_counted_and_limited():
    judge = TokenCountFilter(Words(), min_tokens=1, max_tokens=2)

    assert [judge.score_document(text) for text in ("", "a", "a b c")] == [0, 1, 3]
    assert [score for score in range(5) if judge.keep_document(score)] == [1, 2]
    assert judge.describe_threshold() == "1 ≤ tokens ≤ 2"


def test_without_limits_everything_stays():
    assert TokenCountFilter(Words()).keep_document(10**12)


@pytest.mark.parametrize("options", [{}, {"tokenizer": Words(), "hf_model_name": "x"}])
def test_one_tokenizer_is_needed(options):
    with pytest.raises(ConfigError, match="expected either tokenizer or hf_model_name; got"):
        TokenCountFilter(**options)


@pytest.mark.slow
def test_a_users_tokenizer_works_in_worker_processes():
    tasks = [DocumentBatch("t", pa.table({"text": ["a b", "a b c"]})) for _ in range(2)]
    stage = ScoreFilter(TokenCountFilter(Words(), max_tokens=2), score_field="n")
    result = Pipeline("tokens", stages=[stage]).run(LocalExecutor(num_workers=2), initial_tasks=tasks)

    assert [task.column("n").to_pylist() for task in result] == [[2], [2]]


@pytest.mark.parametrize("where", ["file", "directory"])
def test_a_tokenizer_file_works_offline(where, tmp_path):
    pytest.importorskip("tokenizers", reason="needs the extra 'models'")
    vocabulary = {"[UNK]": 0, "the": 1, "mill": 2}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    pieces = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    (tmp_path / "tokenizer.json").write_text(json.dumps(pieces))
    judge = TokenCountFilter(hf_model_name=str(tmp_path / "tokenizer.json" if where == "file" else tmp_path))

    assert judge.score_document("the old mill") == 3
    assert pickle.loads(pickle.dumps(judge)) == judge


def test_a_missing_package_is_named_before_anything_starts(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)

    with pytest.raises(MissingDependency, match=r"pip install 'gristmill\[models\]'"):
        TokenCountFilter(hf_model_name="some/model")


@pytest.fixture(scope="module")
def sentencepiece_model(tmp_path_factory):
    sentencepiece = pytest.importorskip("sentencepiece", reason="needs the extra 'code'")
    directory = tmp_path_factory.mktemp("sp")
    sentences = iter(["the miller went to the mill and the river"] * 50)
    prefix = str(directory / "tiny")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences, model_prefix=prefix, vocab_size=40, minloglevel=2, hard_vocab_limit=False
    )
    return f"{prefix}.model"


def test_characters_per_token(sentencepiece_model):
    judge = TokenizerFertilityFilter(sentencepiece_model)

    assert judge.score_document("the mill") > judge.score_document("lmhe tit") > 0
    assert judge.score_document("") == -1.0
    assert pickle.loads(pickle.dumps(judge)) == judge
