"""Texts to ids: cut with special tokens kept, empty, odd and overlong ones included."""

import numpy as np
import pytest

from gristmill.errors import ConfigError
from gristmill.models.runtime import ModelSource
from gristmill.models.tokenizer import open_tokenizer
from gristmill.testing.tiny_models import CLS, SEP, SPECIAL, UNK, WORDS, write_tiny_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tokenizer")
    write_tiny_tokenizer(directory)
    return open_tokenizer(ModelSource(str(directory)))


def ids(*words):
    return [CLS, *(len(SPECIAL) + WORDS.index(word) for word in words), SEP]


def rows(tokens):
    return [part.tolist() for part in np.split(tokens.ids, tokens.offsets[1:-1])]


def test_texts_are_laid_end_to_end(tokenizer):
    tokens = tokenizer.encode(["The water", "good"])

    assert rows(tokens) == [ids("the", "water"), ids("good")]
    assert (tokens.ids.dtype, tokens.offsets.dtype) == (np.int32, np.int64)
    assert tokens.is_truncated.tolist() == [False, False]


def test_a_long_text_is_cut_and_keeps_its_special_tokens(tokenizer):
    tokens = tokenizer.encode(["one two time people", "one two"], max_length=4)

    assert rows(tokens) == [ids("one", "two"), ids("one", "two")]
    assert tokens.is_truncated.tolist() == [True, False]
    assert rows(tokenizer.encode(["one two time people"])) == [ids("one", "two", "time", "people")]


def test_an_empty_text_has_special_tokens_only_and_no_text_no_ids(tokenizer):
    assert rows(tokenizer.encode([""])) == [[CLS, SEP]]
    empty = tokenizer.encode([])
    assert (len(empty.ids), empty.offsets.tolist(), len(empty.is_truncated)) == (0, [0], 0)


@pytest.mark.parametrize("odd", ["\ud800", "a \udfff b", "\0", "﷐", "🦊" * 3])
def test_what_is_no_text_is_taken_all_the_same(tokenizer, odd):
    tokens = tokenizer.encode([odd, "good"])

    assert rows(tokens)[1] == ids("good")
    assert UNK in rows(tokens)[0]


def test_a_text_of_many_words_is_cut(tokenizer):
    assert np.diff(tokenizer.encode(["one " * 100_000], max_length=16).offsets).tolist() == [16]


def test_a_limit_below_the_special_tokens_is_refused(tokenizer):
    with pytest.raises(ConfigError, match=r"^tokenizer: expected max_length > 2, its special tokens; got 2$"):
        tokenizer.encode(["one"], max_length=2)


def test_ids_and_tokens_are_found(tokenizer):
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.eos_id) == (0, UNK, None)
    assert tokenizer.id_of("[CLS]") == CLS
    assert tokenizer.decode(ids("good", "news")) == "good news"


def test_a_directory_without_a_tokenizer_is_told_what_is_there_instead(tmp_path):
    source = ModelSource(str(tmp_path), who="QualityClassifier")
    with pytest.raises(ConfigError, match=r"^QualityClassifier: expected a tokenizer\.json in .*; found no tokenizer$"):
        open_tokenizer(source)
    (tmp_path / "spm.model").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"found spm\.model, an older form\. transformers writes the new one: "):
        open_tokenizer(source)


def test_a_damaged_tokenizer_is_told(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"^model: expected a tokenizer of the tokenizers library in "):
        open_tokenizer(ModelSource(str(tmp_path)))
