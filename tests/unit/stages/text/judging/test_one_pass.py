"""Neighbouring stages that judge texts give in one pass what they give one by one, and nothing is counted twice."""

import json

import pyarrow as pa
import pytest
from tests.heuristic_filters import HARD_TEXTS
from tests.jsonl_files import write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.engine.plan import join_neighbours
from gristmill.kernels.text.layout import LINES, PARAGRAPHS
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.context import StageContext
from gristmill.stages.text.filters import DocumentFilter, Filter, Score, ScoreFilter
from gristmill.stages.text.filters.heuristic import (
    BulletsFilter,
    LongWordFilter,
    MeanWordLengthFilter,
    NonAlphaNumericFilter,
    PunctuationFilter,
    RepeatedLinesFilter,
    RepeatingDuplicateNGramsFilter,
    RepeatingTopNGramsFilter,
    WordCountFilter,
)
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.text.judging.judge import SMALL_BYTES, Judge
from gristmill.stages.text.rules import ApplyRules, C4Quality, DolmaGopher, FineWebQuality, GopherRepetition
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
STAGES_WITH_RULES = [
    ScoreFilter(WordCountFilter(2, 5000), score_field="words"),
    ApplyRules(GopherRepetition(top_n_grams=((2, 0.7),), dup_n_grams=((5, 0.8),))),
    ApplyRules([C4Quality(min_num_sentences=2), FineWebQuality()]),
    Score(MeanWordLengthFilter(), "mean"),  # of the text that C4 left
    ScoreFilter(WordCountFilter(20, 80), score_field="words"),
    ApplyRules(DolmaGopher(min_words=30, top_n_grams=(), dup_n_grams=())),
]
TEXTS = [
    *HARD_TEXTS.values(),
    None,
    *(f"{'word ' * (k % 9)}and {k} more, {'other ' * (k % 4)}things." for k in range(40)),
]


def one_after_another(batch, contexts, stages):
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
@pytest.mark.parametrize("small_bytes", [0, SMALL_BYTES])
def test_one_pass_keeps_scores_and_reports_what_the_stages_do(small_bytes):
    check_one_pass(STAGES, TEXTS, small_bytes)


def prose(sentences, seed):
    """Lines of different words, most of them common ones."""
    words = [
        f"{a}{b}" for a in ("mill", "stone", "river", "grain", "wheel") for b in ("s", "ing", "er", "work", "side")
    ]
    lines = [
        f"The {words[(seed + 7 * k) % 25]} have to be with {words[(seed + 11 * k) % 25]}, of {k} {words[k]}."
        for k in range(sentences)
    ]
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("small_bytes", [0, SMALL_BYTES])
def test_one_pass_of_filters_and_rule_sets_does_what_the_stages_do(small_bytes):
    texts = [
        "Menu\n" + prose(k % 12, k) + "\nWhat { has a curly bracket." * (k == 13) + "\nRead more" * (k % 3)
        for k in range(60)
    ]
    check_one_pass(STAGES_WITH_RULES, [*texts, None, *HARD_TEXTS.values()], small_bytes)


def check_one_pass(stages, texts, small_bytes):
    batch = DocumentBatch("test", pa.table({"text": pa.array(texts, pa.string()), "n": range(len(texts))}))
    expected_contexts, found_contexts = ([StageContext(keep_rejects=True) for _ in stages] for _ in range(2))
    expected = one_after_another(batch, expected_contexts, stages)
    entered = []

    pass_ = Judge([stage.steps() for stage in stages], small_bytes=small_bytes)
    found = pass_.run(batch, found_contexts, lambda number, documents: entered.append((number, documents)))

    assert found.to_pyarrow().to_pylist() == expected.to_pyarrow().to_pylist()
    assert 0 < found.num_items < len(texts)
    assert reports(found_contexts) == reports(expected_contexts)
    assert [number for number, _ in entered] == list(range(len(stages)))
    dropped = [sum(context.dropped.values()) for context in found_contexts]
    assert [documents for _, documents in entered] == [len(texts) - sum(dropped[:k]) for k in range(len(stages))]


@pytest.fixture
def kernel_calls(monkeypatch):
    """The kernels that are called, with the numbers they are given."""
    calls = []
    call = CompiledKernel.__call__

    def noted(kernel, *arguments):
        calls.append((kernel.name, *(given for given in arguments if isinstance(given, int))))
        return call(kernel, *arguments)

    monkeypatch.setattr(CompiledKernel, "__call__", noted)
    return calls


@pytest.mark.slow
def test_what_a_filter_has_counted_a_rule_set_next_to_it_does_not_count_again(kernel_calls):
    texts = [f"{k} The mill stands where the river bends, and that is all there is to say.\n" * 9 for k in range(20)]
    batch = DocumentBatch("test", pa.table({"text": texts}))
    lenient = FineWebQuality(char_duplicates_ratio=1.0, new_line_ratio=1.0)
    repetition = GopherRepetition(dup_line_frac=1, dup_line_char_frac=1, top_n_grams=(), dup_n_grams=())
    stages = [
        ScoreFilter([NonAlphaNumericFilter(1.0), RepeatedLinesFilter(0.0), BulletsFilter(1.0)]),
        ApplyRules([lenient, repetition]),
        ScoreFilter(PunctuationFilter(1.0)),
    ]

    kept = Judge([stage.steps() for stage in stages], small_bytes=0).run(batch, [StageContext() for _ in stages])

    assert kept.num_items == len(texts)
    # Characters with their classes, lines with all that is asked of them; characters or distinct lines alone are not
    # counted, and what two sets ask for is counted for one.
    pieces = [numbers[1] for name, *numbers in kernel_calls if name == "count_pieces"]
    assert sorted(pieces) == [PARAGRAPHS, LINES]
    counting = [name for name, *_ in kernel_calls if name != "count_pieces"]
    assert sorted(counting) == ["count_classes", "count_filled_lines", "count_lines", "tokenize"]


@pytest.mark.slow
def test_a_rule_set_alone_takes_the_smaller_passes(kernel_calls):
    batch = DocumentBatch("test", pa.table({"text": ["One line is enough for this."]}))

    ApplyRules(FineWebQuality()).process(batch)

    assert {name for name, *_ in kernel_calls} >= {"count_characters", "count_pieces"}
    assert {"count_classes", "count_lines"}.isdisjoint(name for name, *_ in kernel_calls)


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
        ([ScoreFilter(WordCountFilter()), ApplyRules(C4Quality()), Score(len, "n")], {0: 3}),
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
