"""Texts to tokens: the table of edge cases, what a model sees, and one tokenizer for models that agree."""

from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.errors import ConfigError, StageError
from gristmill.pipeline import Pipeline
from gristmill.pipeline.pipeline import prepare
from gristmill.stages.text.models import TokenizerStage
from gristmill.stages.text.models.tokenizer import CALL_TEXTS, CHARS_A_TOKEN, MOST_CHARS_A_TOKEN, TokenReader
from gristmill.tasks import DocumentBatch
from gristmill.testing.tiny_models import CLS, SEP, SPECIAL, UNK, WORDS, write_tiny_classifier


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_tiny_classifier(tmp_path_factory.mktemp("model")))


def batch(*texts, **more):
    return DocumentBatch("d", pa.table({"text": pa.array(texts, pa.string()), **more}))


def ids(*words):
    return [CLS, *(len(SPECIAL) + WORDS.index(word) for word in words), SEP]


def tokens(stage, *texts):
    return stage.process(batch(*texts)).column(stage.tokens_field).to_pylist()


def test_tokens_are_lists_of_int32_without_padding_and_the_text_stays(model):
    given = batch("The water", "good news page")
    made = TokenizerStage(model).process(given)

    assert made.column("input_ids").type == pa.list_(pa.int32())
    assert made.column("input_ids").to_pylist() == [ids("the", "water"), ids("good", "news", "page")]
    assert made.column("text").equals(given.column("text"))
    assert made.get_columns() == ["text", "input_ids"]


@pytest.mark.parametrize("text", [None, "", " ", "\n\t\n", "\u00a0\u2003"])
def test_a_text_without_a_word_has_no_tokens(model, text):
    assert tokens(TokenizerStage(model), "good", text, "bad") == [ids("good"), None, ids("bad")]


def test_an_empty_batch_has_an_empty_column_of_the_right_type(model):
    stage = TokenizerStage(model, truncated_field="cut")
    made = stage.process(batch())

    assert made.column("input_ids").type == pa.list_(pa.int32())
    assert made.column("cut").type == pa.bool_()
    assert made.num_items == 0


def test_what_is_not_unicode_is_replaced_for_the_model_only(model):
    given = DocumentBatch(
        "d", pa.table({"text": pa.array([b"good \xed\xa0\x80 bad", b"a\0b"]).cast(pa.string(), safe=False)})
    )
    made = TokenizerStage(model).process(given)

    first, second = made.column("input_ids").to_pylist()
    assert first[:2] == ids("good")[:2]
    assert first[-2:] == ids("bad")[1:]
    assert UNK in first
    assert len(second) >= 3
    assert made.column("text").chunk(0).buffers()[2].to_pybytes() == b"good \xed\xa0\x80 bada\0b"


def test_no_known_token_is_the_unknown_one(model):
    assert tokens(TokenizerStage(model), "xyzzy") == [[CLS, UNK, SEP]]


def test_characters_are_cut_first_and_tokens_then_with_special_ones_kept(model):
    stage = TokenizerStage(model, max_chars=13, max_seq_length=4, truncated_field="cut")
    made = stage.process(batch("good bad news science", "good bad", "good bad ne", "good bad news"))

    assert made.column("input_ids").to_pylist()[0] == ids("good", "bad")
    assert made.column("cut").to_pylist() == [True, False, True, True]


def test_characters_and_not_bytes_are_counted(model):
    text = "éあ🦊" * 3 + " good"

    assert ids("good")[1] not in tokens(TokenizerStage(model, max_chars=13), text)[0]
    assert ids("good")[1] in tokens(TokenizerStage(model, max_chars=14), text)[0]
    assert tokens(TokenizerStage(model, max_chars=1), "🦊🦊") == [[CLS, UNK, SEP]]


def test_the_middle_of_a_long_text_is_seen(model):
    text = "good " * 100 + "science " + "time " * 100
    seen = tokens(TokenizerStage(model, center_crop_chars=50), text)[0]

    assert len(seen) < 40
    assert ids("good")[1] in seen
    assert ids("science")[1] in seen
    assert ids("time")[1] in seen


def test_a_document_is_put_into_a_prompt_with_its_braces(model):
    stage = TokenizerStage(model, prompt="news {document} page")

    assert tokens(stage, "good", "  ", "{document}")[:2] == [ids("news", "good", "page"), None]


@pytest.mark.parametrize("words", [10, 400, 100_000])
def test_a_very_long_text_gives_the_tokens_of_the_whole(model, words):
    text = " ".join(WORDS[i % len(WORDS)] for i in range(words))
    assert len(text) > 8 * CHARS_A_TOKEN or words == 10

    assert tokens(TokenizerStage(model, max_seq_length=8), text) == [ids(*WORDS[:6])]
    assert tokens(TokenizerStage(model, max_seq_length=8), "a" * 5000, " " * 5000 + "good") == [
        [CLS, UNK, SEP],
        ids("good"),
    ]


def test_a_tokenizer_that_keeps_the_end_keeps_the_end_of_a_very_long_text(model, tmp_path):
    for name in ("tokenizer.json", "config.json"):
        (tmp_path / name).write_bytes((Path(model) / name).read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"truncation_side": "left"}')
    long = "the " * 5 * CHARS_A_TOKEN + "water"

    assert tokens(TokenizerStage(str(tmp_path), max_seq_length=4), long) == [ids("the", "water")]


def test_of_an_endless_word_no_more_is_looked_at_than_could_matter(model):
    most = 8 * MOST_CHARS_A_TOKEN
    stage = TokenizerStage(model, max_seq_length=8, truncated_field="cut")
    made = stage.process(batch("a" * (most - 5) + " good", "a" * most + " good", "a" * most))

    assert made.column("input_ids").to_pylist() == [[CLS, UNK, *ids("good")[1:]], [CLS, UNK, SEP], [CLS, UNK, SEP]]
    assert made.column("cut").to_pylist() == [False, True, False]


def test_more_texts_than_are_given_to_the_library_at_once_keep_their_places(model):
    texts = [WORDS[i % len(WORDS)] if i % 3 else None for i in range(2 * CALL_TEXTS + 7)]
    expected = [None if text is None else ids(text) for text in texts]

    assert tokens(TokenizerStage(model), *texts) == expected


def test_numbers_are_taken_as_they_are_written(model):
    made = TokenizerStage(model).process(DocumentBatch("d", pa.table({"text": [1, 2]})))

    assert made.column("input_ids").to_pylist() == [[CLS, UNK, SEP]] * 2


def test_a_missing_column_is_named(model):
    with pytest.raises(StageError, match="did you mean 'text'"):
        TokenizerStage(model, text_field="txt").process(batch("a"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_chars": 0}, "expected max_chars to be a whole number ≥ 1; got 0"),
        ({"max_seq_length": True}, "expected max_seq_length"),
        ({"prompt": "no place"}, "expected a prompt with"),
    ],
)
def test_a_wrong_parameter_is_named(model, wrong, message):
    with pytest.raises(ConfigError, match=message):
        TokenizerStage(model, **wrong)


def test_a_directory_without_a_tokenizer_is_said_while_planning(tmp_path):
    with pytest.raises(ConfigError, match=r"expected a tokenizer\.json in"):
        Pipeline("p", stages=[TokenizerStage(str(tmp_path))]).plan(initial_tasks=[batch("a")])


def test_a_column_of_that_name_is_never_replaced(model):
    class ReadsInputIds(TokenReader):
        def columns(self):
            return ["text", "input_ids"]

        def process(self, task):
            return task

    with pytest.raises(ConfigError, match="expected no column 'input_ids' yet"):
        Pipeline("p", stages=[ReadsInputIds(), TokenizerStage(model)]).plan(initial_tasks=[batch("a")])


class ReadsTokens(TokenReader):
    handed = False

    def handing_tokens_on(self):
        changed = self.with_()
        changed.handed = True
        return changed

    def process(self, task):
        return task


def kinds(stages):
    return [type(stage).__name__ for stage in prepare("p", stages, bool)]


def test_models_that_agree_share_one_tokenizer(model, tmp_path):
    copy = str(write_tiny_classifier(tmp_path / "other", seed=5))
    stages = [TokenizerStage(model), ReadsTokens(), TokenizerStage(copy, truncated_field="cut"), ReadsTokens()]
    tokenizer, first, second = prepare("p", stages, bool)

    assert (first.handed, second.handed) == (True, False)
    assert tokenizer.truncated_field == "cut"
    assert stages[0].truncated_field is None


@pytest.mark.parametrize(
    "other", [{"max_chars": 7}, {"max_seq_length": 7}, {"text_field": "title"}, {"prompt": "{document}"}]
)
def test_models_that_do_not_agree_have_tokenizers_of_their_own(model, other):
    stages = [TokenizerStage(model), ReadsTokens(), TokenizerStage(model, **other), ReadsTokens()]

    assert kinds(stages) == ["TokenizerStage", "ReadsTokens"] * 2


def test_another_vocabulary_is_another_tokenizer(model, tmp_path):
    from gristmill.testing.tiny_models import write_tiny_tokenizer

    write_tiny_tokenizer(tmp_path, words=["good", "bad"])

    assert kinds([TokenizerStage(model), ReadsTokens(), TokenizerStage(str(tmp_path))]) == [
        "TokenizerStage",
        "ReadsTokens",
        "TokenizerStage",
    ]


def test_behind_a_stage_that_may_change_texts_tokens_are_made_anew(model):
    from gristmill.stages.text.modifiers import Modify

    stages = [TokenizerStage(model), ReadsTokens(), Modify(str.lower), TokenizerStage(model)]

    assert kinds(stages) == ["TokenizerStage", "ReadsTokens", "Modify", "TokenizerStage"]
