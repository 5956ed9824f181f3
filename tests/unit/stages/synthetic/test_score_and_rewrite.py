"""Scores, rewritten texts, variants and samples on one batch."""

import asyncio
import pickle

import pyarrow as pa
import pytest

from gristmill.errors import ConfigError
from gristmill.models.client import AsyncLLMClient
from gristmill.stages.synthetic import (
    LanguageFilter,
    LLMScoreStage,
    QAMultilingualSyntheticStage,
    RewriteStage,
    VariantsToDocuments,
)
from gristmill.tasks import DocumentBatch


class Says(AsyncLLMClient):
    """Answers what a table says for the words of a prompt; else the prompt."""

    def __init__(self, **said):
        super().__init__(max_concurrent_requests=8)
        self.said = said

    def setup(self):
        self._live_asked = []

    async def _query_model_impl(self, *, messages, model, conversation_formatter=None, generation_config=None):
        content = messages[-1]["content"]
        self._live_asked.append((content, generation_config.seed))
        return [next((answer for word, answer in self.said.items() if word in content), content)]


def process(stage, **columns):
    batch = DocumentBatch("d", pa.table(columns))

    async def run():
        await stage.setup()
        try:
            return await stage.process(batch)
        finally:
            await stage.teardown()

    return asyncio.run(run()) if hasattr(stage, "client") else stage.process(batch)


def test_scores_are_numbers_and_an_answer_without_one_is_quarantined_alone():
    stage = LLMScoreStage("educational_score", Says(xg="Well. Score: 5", xb="Score: 0", xo="I cannot."), "m")
    made = process(stage, text=["xg", "xo", None, "xb"])

    assert made.column("llm_score").to_pylist() == [5, None, 0]
    assert str(made.column("llm_score").type) == "int64"
    (record,) = stage.context.quarantined
    assert record.row == 1
    assert "expected an answer that 'int:0-5' finds one value in; got 'I cannot.'" in record.error


def test_an_answer_without_a_score_may_be_null_and_the_answer_kept():
    model = Says(good='{"score": 4.5}', odd="I cannot.")
    stage = LLMScoreStage("{document}", model, "m", "s", "json:score", on_unparsed="null", answer_field="why")
    made = process(stage, text=["good", "odd", ""])

    assert made.to_pyarrow().to_pydict() == {
        "text": ["good", "odd", ""],
        "s": [4.5, None, None],
        "s_truncated": [False, False, None],
        "why": ['{"score": 4.5}', "I cannot.", None],
    }
    assert stage.context.own_counts.counted["unparsed_answers"] == 1


def test_what_a_scoring_stage_cannot_do_is_said_at_once():
    with pytest.raises(ConfigError, match="expected parse to be"):
        LLMScoreStage("{document}", Says(), "m", parse="float")
    with pytest.raises(ConfigError, match="did you mean 'null'"):
        LLMScoreStage("{document}", Says(), "m", on_unparsed="nul")
    with pytest.raises(ConfigError, match="a score has no parts to join"):
        LLMScoreStage("{document}", Says(), "m", on_overlong="split")


def test_a_rewritten_document_keeps_what_it_was_and_the_others_are_left_alone():
    stage = RewriteStage(Says(low="Rewritten text: better"), "m", where="level == 'low'")
    made = process(stage, text=["low one", "high one", None, " "], level=["low", "high", "low", "low"])

    assert made.to_pyarrow().to_pydict() == {
        "text": ["better", "high one", None, " "],
        "level": ["low", "high", "low", "low"],
        "text_truncated": [False, None, None, None],
        "original_text": ["low one", None, None, None],
    }


def test_an_unusable_answer_is_never_an_empty_text():
    stage = RewriteStage(Says(qqa="Rewritten text:  ", qqb="Sure!", qqc="Rewritten text: fine"), "m")
    made = process(stage, text=["qqa", "qqb", "qqc"])

    assert made.column("text").to_pylist() == ["fine"]
    assert [record.row for record in stage.context.quarantined] == [0, 1]


def test_a_text_too_long_to_rewrite_stays_as_it_is():
    stage = RewriteStage(Says(), "m", "{document}", max_input_tokens=3)
    made = process(stage, text=["a b c", "a b c d"])

    with pytest.raises(ConfigError, match="'truncate' would lose the rest"):
        RewriteStage(Says(), "m", on_overlong="truncate")
    assert made.column("original_text").to_pylist() == ["a b c", None]
    assert made.column("text").to_pylist() == ["a b c", "a b c d"]


BATCH = {"id": [1, 2, 3], "text": ["a", "b", None], "x": ["ax", None, "cx"], "y": ["ay", None, None], "n": [7, 8, 9]}


def test_variants_become_documents_behind_their_own():
    made = process(VariantsToDocuments(["x", "y"]), **BATCH, x_truncated=[False, None, True])

    assert made.to_pyarrow().to_pydict() == {
        "id": ["1", "1#x", "1#y", "2", "3", "3#x"],
        "text": ["a", "ax", "ay", "b", None, "cx"],
        "n": [7, 7, 7, 8, 9, 9],
        "variant": [None, "x", "y", None, None, "x"],
    }


def test_a_document_may_give_way_to_its_variant():
    made = process(VariantsToDocuments(["x"], keep_original=False), **BATCH)

    assert made.column("text").to_pylist() == ["ax", "b", "cx"]
    assert made.column("variant").to_pylist() == ["x", None, "x"]


def test_what_was_a_variant_before_stays_one():
    made = process(VariantsToDocuments("x"), text=["a", "b"], x=["ax", None], variant=[None, "distill"])

    assert made.column("variant").to_pylist() == [None, "x", "distill"]


def test_a_batch_without_variants_has_the_same_columns():
    empty = {name: pa.array([], pa.string()) for name in ("id", "text", "x")}

    assert process(VariantsToDocuments("x"), **empty).get_columns() == ["id", "text", "variant"]
    with pytest.raises(ConfigError, match="expected fields to be columns with variants"):
        VariantsToDocuments(["text"])


def samples(**changed):
    given = {"languages": ["German", "French", "Thai"], "client": Says(), "model_name": "m", "num_samples": 600}
    return QAMultilingualSyntheticStage(**{"prompt": "qa_multilingual", **given, **changed}).decompose()


def test_samples_come_in_partitions_and_a_number_has_one_language():
    numbers, _ = samples()
    more, _ = samples(num_samples=700)
    batches = numbers.partitions()
    languages = [each for batch in batches for each in batch.column("language").to_pylist()]

    assert [batch.num_items for batch in batches] == [256, 256, 88]
    assert all(150 < languages.count(each) < 250 for each in ("German", "French", "Thai"))
    assert [each for batch in more.partitions() for each in batch.column("language").to_pylist()][:600] == languages
    assert samples(num_samples=0)[0].partitions()[0].num_items == 0


def test_every_sample_is_asked_for_with_a_seed_of_its_own():
    numbers, asking = samples(prompt="In {language}, {please}", num_samples=3)
    made = process(asking, **numbers.partitions()[0].to_pyarrow().to_pydict())

    languages = made.column("language").to_pylist()
    assert made.column("text").to_pylist() == [f"In {each}, {{please}}" for each in languages]
    assert sorted(seed for _, seed in asking._asked._live_asked) == [0, 1, 2]


def test_languages_and_numbers_that_make_no_sense_are_refused():
    for wrong in ({"languages": []}, {"languages": "German"}, {"num_samples": -1}, {"prompt": "no variable here"}):
        with pytest.raises(ConfigError):
            samples(**wrong)


def test_texts_that_do_not_name_their_language_are_dropped():
    kept = LanguageFilter(["German", "Thai"])

    assert [kept.keep_document(kept.score_document(text)) for text in ("German\nQ", "Q")] == [True, False]


def test_stages_travel():
    for stage in (LLMScoreStage("{document}", Says(), "m"), RewriteStage(Says(), "m"), VariantsToDocuments("x")):
        assert pickle.loads(pickle.dumps(stage)).get_config() == stage.get_config()
