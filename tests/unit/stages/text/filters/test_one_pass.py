"""Neighbouring filter stages in one pass give what they give one after another, and say the same about it."""

import json

import pyarrow as pa
import pytest
from tests.heuristic_filters import HARD_TEXTS
from tests.jsonl_files import write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.engine.joining import join_neighbours
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import StageContext
from gristmill.stages.text.filters import DocumentFilter, Filter, Score, ScoreFilter
from gristmill.stages.text.filters import filter_runner as runner
from gristmill.stages.text.filters.heuristic import (
    LongWordFilter,
    MeanWordLengthFilter,
    NonAlphaNumericFilter,
    RepeatingDuplicateNGramsFilter,
    RepeatingTopNGramsFilter,
    WordCountFilter,
)
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch


class VowelsFilter(DocumentFilter[int]):
    """A user's filter; it cannot do without vowels."""

    def score_document(self, text):
        count = sum(text.count(vowel) for vowel in "aeiou")
        if "xyzzy" in text:
            raise ValueError("nothing happens")
        return count

    def keep_document(self, score):
        return score != 7


def is_even(number):
    return number % 2 == 0


STAGES = [
    ScoreFilter(WordCountFilter(2, 5000), score_field="words"),
    Score([len, MeanWordLengthFilter()], ["chars", "mean"]),
    ScoreFilter([NonAlphaNumericFilter(0.6), VowelsFilter()], score_field=[None, "vowels"], invert=[False, False]),
    Filter([is_even, MeanWordLengthFilter(2, 9)], ["chars", "mean"]),
    ScoreFilter(LongWordFilter(3), invert=True),
    ScoreFilter([RepeatingTopNGramsFilter(2, 0.5), RepeatingDuplicateNGramsFilter(3, 0.2)]),
]
TEXTS = [
    *HARD_TEXTS.values(),
    None,
    *(f"{'word ' * (k % 9)}and {k} more, {'other ' * (k % 4)}things." for k in range(40)),
]


def contexts():
    return [StageContext(keep_rejects=True) for _ in STAGES]


def one_after_another(batch, contexts, stages=STAGES):
    for stage, context in zip(stages, contexts, strict=True):
        stage.context = context
        batch = stage.process(batch)
    return batch


def reports(contexts):
    return [
        (
            context.dropped,
            [(r.items.to_pyarrow().to_pylist(), r.reason, r.values, r.threshold) for r in context.rejects],
        )
        for context in contexts
    ]


@pytest.mark.slow
@pytest.mark.parametrize("small_bytes", [0, runner.SMALL_BYTES])
def test_one_pass_keeps_scores_and_reports_what_the_stages_do(small_bytes):
    batch = DocumentBatch("test", pa.table({"text": pa.array(TEXTS, pa.string()), "n": range(len(TEXTS))}))
    expected_contexts, found_contexts = contexts(), contexts()
    expected = one_after_another(batch, expected_contexts)
    entered = []

    pass_ = runner.FilterRunner([stage.steps() for stage in STAGES], small_bytes=small_bytes)
    found = pass_.run(batch, found_contexts, lambda number, documents: entered.append((number, documents)))

    assert found.to_pyarrow().to_pylist() == expected.to_pyarrow().to_pylist()
    assert 0 < found.num_items < len(TEXTS)
    assert reports(found_contexts) == reports(expected_contexts)
    assert [number for number, _ in entered] == list(range(len(STAGES)))
    dropped = [sum(context.dropped.values()) for context in found_contexts]
    assert [documents for _, documents in entered] == [len(TEXTS) - sum(dropped[:k]) for k in range(len(STAGES))]


class OwnScoreFilter(ScoreFilter):
    def process(self, task):
        return super().process(task)


@pytest.mark.parametrize(
    ("stages", "lengths"),
    [
        ([ScoreFilter(WordCountFilter())], {}),
        ([ScoreFilter(WordCountFilter()), Score(len, "chars"), Filter(is_even, "chars")], {0: 3}),
        ([ScoreFilter(WordCountFilter()), OwnScoreFilter(WordCountFilter()), Score(len, "n"), Score(len, "m")], {2: 2}),
        ([Score(len, "n"), Score(len, "m").with_(batch_size=2)], {}),
    ],
)
def test_stages_are_joined_unless_they_do_something_of_their_own(stages, lengths):
    assert {first: length for first, (length, _) in join_neighbours(stages).items()} == lengths


def test_other_stages_are_not_joined():
    class Other(ProcessingStage[DocumentBatch, DocumentBatch]):
        def process(self, task):
            return task

    assert join_neighbours([Score(len, "n"), Other(), Score(len, "m")]) == {}


def test_a_plan_shows_the_pass():
    stages = [Score(len, "n"), Score(len, "m")]
    plan = Pipeline("shown", stages=stages).plan(initial_tasks=[DocumentBatch("test", pa.table({"text": ["a"]}))])

    assert "    2 stages in one pass:\n      score_len\n      score_len_2\n" in plan.describe()


@pytest.mark.slow
def test_an_exception_in_a_users_filter_quarantines_one_document_of_a_pass(tmp_path):
    texts = ["fine and even text", "a xyzzy text here", "short"]
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": text} for text in texts])
    stages = [
        JsonlReader(str(tmp_path / "in")),
        ScoreFilter(WordCountFilter(2)),
        ScoreFilter([NonAlphaNumericFilter(0.9), VowelsFilter()], name="own"),
        ScoreFilter(MeanWordLengthFilter()),
        JsonlWriter(str(tmp_path / "out")),
    ]

    result = Pipeline("quarantine", stages=stages).run(LocalExecutor(num_workers=2))

    [path] = (tmp_path / "out").glob("*.jsonl")
    written = [json.loads(line)["text"] for line in path.read_text().splitlines()]
    assert written == ["fine and even text"]
    assert {name: counts.quarantined for name, counts in result.counts.items() if counts.quarantined} == {"own": 1}
    assert result.dropped == {"word_count": {"word_count": 1}}
