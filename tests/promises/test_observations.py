"""What is recorded about documents: of every measure, of a user's filter too, once, and no more than was asked for."""

import json
import os
import random
import stat
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.jsonl_files import write_documents
from typer.testing import CliRunner

from gristmill.backends.local import LocalExecutor
from gristmill.cli.main import app
from gristmill.errors import ConfigError
from gristmill.metrics.observation_files import encode_observations, load_observations
from gristmill.metrics.observations import EXCERPT_CHARS, NEAREST, SAMPLED
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import Observation
from gristmill.stages.text.classifiers.base import KeepLabels
from gristmill.stages.text.filters import DocumentFilter, Filter, Score, ScoreFilter
from gristmill.stages.text.filters.heuristic import MeanWordLengthFilter, WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader, ParquetReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.text.judging.rule import Rule, RuleSet
from gristmill.stages.text.rules import ApplyRules
from gristmill.tasks import DocumentBatch

pytestmark = pytest.mark.slow

FILES, ROWS = 4, 120


class VowelsFilter(DocumentFilter[int]):
    """A filter somebody writes in five lines."""

    def score_document(self, text):
        return sum(text.count(vowel) for vowel in "aeiou")

    def keep_document(self, score):
        return score % 7 != 0


class RaisesOnPoison(DocumentFilter[float]):
    measure = "letters"

    def score_document(self, text):
        if "poison" in text:
            raise ValueError("will not read this")
        return float(len(text))

    def bounds(self):
        return 40.0, None


def documents(poison=()):
    chance = random.Random(5)
    words = ["stone", "mill", "river", "grain", "sack", "the", "of", "and", "with", "wheel,", "water.", "turns!"]
    for number in range(FILES * ROWS):
        text = " ".join(chance.choices(words, k=chance.choice([2, 5, 6, 7, 20, 60])))
        yield {"id": f"d{number}", "text": text, "source": f"s{number % 3}", "n": number}
        if number in poison:
            yield {"id": f"p{number}", "text": f"poison {text}", "source": "s0", "n": number}


def write_corpus(directory, poison=()):
    rows = list(documents(poison))
    for file in range(FILES):
        write_documents(directory / f"{file}.jsonl", [row for row in rows if row["n"] // ROWS == file])
    return directory


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("observed") / "in")


def judged(corpus, out, *more):
    stages = [
        JsonlReader(str(corpus), blocksize="8KB"),
        ScoreFilter(WordCountFilter(6, 1000), score_field="words"),
        ScoreFilter([RaisesOnPoison(), VowelsFilter()], name="poison_and_vowels"),
        Score(MeanWordLengthFilter(), "mean"),
        Filter(MeanWordLengthFilter(4, 9), "mean"),
        *more,
        JsonlWriter(str(out)),
    ]
    return Pipeline("judged", stages=stages)


def run(corpus, out, *more, workers=0, **options):
    return judged(corpus, out, *more).run(LocalExecutor(num_workers=workers), quiet=True, **options)


def seen(out):
    return load_observations(out / ".gristmill")


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("observed") / "out"
    return run(corpus, out), out


def test_every_measure_is_counted_with_what_was_kept_and_what_was_not(finished):
    result, out = finished
    found = {(tally.stage, tally.name): tally for tally in seen(out).tallies}
    words = found["word_count", "word_count"]

    assert list(found) == [
        ("word_count", "word_count"),
        ("poison_and_vowels", "raises_on_poison"),
        ("poison_and_vowels", "vowels"),
        ("score_mean_word_length", "mean"),
        ("filter_mean", "mean_word_length"),
    ]
    assert words.kept.num_documents == result.counts["word_count"].documents_out
    assert words.refused.num_documents == result.counts["word_count"].dropped["word_count"]
    assert (words.low, words.high, words.condition, words.measure) == (6, 1000, "6 ≤ words ≤ 1000", "words")
    exact = [len(document["text"].split()) for document in documents()]
    assert words.kept.sum + words.refused.sum == sum(exact)
    assert (words.refused.least, words.kept.greatest) == (min(exact), max(exact))
    assert words.num_within(low=7) == sum(number >= 7 for number in exact)


def test_a_filter_written_in_five_lines_shows_up(finished):
    result, out = finished
    vowels = seen(out).tally("poison_and_vowels", "vowels")

    assert vowels.refused.num_documents == result.counts["poison_and_vowels"].dropped["vowels"] > 0
    assert vowels.kept.num_documents > 0
    assert all(example.value % 7 == 0 for example in seen(out).sample("poison_and_vowels", "vowels"))


@pytest.mark.parametrize(
    ("stage", "reason", "measured"),
    [
        ("poison_and_vowels", "vowels", VowelsFilter().score_document),
        ("word_count", "word_count", lambda text: len(text.split())),
    ],
)
def test_the_sample_of_a_reason_shows_of_each_document_what_was_measured_on_it(finished, stage, reason, measured):
    _, out = finished
    texts = {document["id"]: document["text"] for document in documents()}
    sample = list(seen(out).sample(stage, reason))

    assert len({example.value for example in sample}) > 1
    assert [example.value for example in sample] == [measured(texts[example.id]) for example in sample]


def test_the_documents_next_to_a_threshold_are_shown(finished):
    _, out = finished
    texts = {document["id"]: document["text"] for document in documents()}
    low, _ = seen(out).tally("word_count", "word_count").nearest

    assert (low.bound, low.threshold, len(low.kept), len(low.refused)) == ("low", 6, NEAREST, NEAREST)
    assert {example.value for example in low.kept} == {6}
    assert {example.value for example in low.refused} == {5}
    for example in (*low.kept, *low.refused):
        assert texts[example.id][:EXCERPT_CHARS] == example.text
        assert len(example.text.split()) == example.value
        assert example.source.endswith(".jsonl")
        assert example.place
    assert len({example.text for example in low.kept}) == NEAREST


def test_documents_of_every_reason_are_shown(finished):
    result, out = finished
    samples = {(sample.stage, sample.reason): sample.examples for sample in seen(out).samples}
    dropped = {(stage, why): n for stage, counts in result.counts.items() for why, n in counts.dropped.items()}

    assert samples.keys() == dropped.keys()
    assert all(0 < len(samples[key]) <= min(SAMPLED, number) for key, number in dropped.items())


def test_bytes_of_documents_add_up_along_the_way(finished):
    result, _ = finished
    stages = list(result.counts.values())

    for before, after in pairwise(stages[1:]):
        assert before.bytes_out == after.bytes_in
    for stage in stages[1:-1]:
        assert set(stage.dropped_bytes) == set(stage.dropped)
    words = result.counts["word_count"]
    assert words.bytes_in == words.bytes_out + sum(words.dropped_bytes.values())


def test_four_workers_record_the_same_bytes_as_one_process(finished, corpus, tmp_path):
    run(corpus, tmp_path / "out", workers=4)

    assert encode_observations(seen(tmp_path / "out")) == encode_observations(seen(finished[1]))


def test_a_batch_that_is_taken_apart_is_recorded_once_and_like_any_other(tmp_path):
    """Stages are called one by one then, and rows have other numbers."""
    found = {}
    for poison in ((), (7, 200, 201)):
        corpus = write_corpus(tmp_path / "in", poison)
        result = run(corpus, tmp_path / "out", workers=2 if poison else 0, fresh=True, max_quarantined=None)
        found[poison] = seen(tmp_path / "out")
        assert result.quarantined == len(poison)

    clean, other = found.values()
    for tally, same in zip(clean.tallies[1:], other.tallies[1:], strict=True):  # behind the poison
        assert (tally.kept, tally.refused) == (same.kept, same.refused)
    assert [w.refused for w in clean.tallies[1].nearest] == [w.refused for w in other.tallies[1].nearest]
    assert clean.samples[1:] == other.samples[1:]


def test_counts_keeps_no_text_and_no_name_of_any_document(corpus, finished, tmp_path):
    run(corpus, tmp_path / "out", observe="counts")
    found, full = seen(tmp_path / "out"), seen(finished[1])

    assert [(t.key, t.kept, t.refused) for t in found.tallies] == [(t.key, t.kept, t.refused) for t in full.tallies]
    assert not found.samples
    assert not any(tally.nearest for tally in found.tallies)


def test_off_keeps_nothing_but_the_books(corpus, finished, tmp_path):
    result = run(corpus, tmp_path / "out", observe="off")

    assert not (tmp_path / "out" / ".gristmill" / "measures").exists()
    assert seen(tmp_path / "out").is_empty
    assert result.counts["word_count"].dropped == finished[0].counts["word_count"].dropped


@pytest.mark.parametrize(("shared", "mode"), [(False, 0o600), (True, 0o644)])
def test_nobody_else_may_read_what_documents_begin_with_unless_the_run_is_shared(corpus, tmp_path, shared, mode):
    before = os.umask(0o022)
    try:
        run(corpus, tmp_path / "out", shared=shared)
    finally:
        os.umask(before)
    files = list((tmp_path / "out" / ".gristmill" / "measures").iterdir())

    assert files
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {mode}


def test_slices_tell_what_became_of_the_documents_of_each_source(corpus, tmp_path):
    result = run(corpus, tmp_path / "out", observe=Observation(slices=("source", "nowhere")))
    slices = seen(tmp_path / "out").slices

    assert list(slices) == ["source"]
    outcomes = slices["source"].values
    assert sorted(outcomes) == ["s0", "s1", "s2"]
    assert sum(one.written.documents for one in outcomes.values()) == result.written
    assert sum(one.total.documents for one in outcomes.values()) == result.read
    words = sum(one.dropped["word_count"]["word_count"].documents for one in outcomes.values())
    assert words == result.counts["word_count"].dropped["word_count"]


def test_without_a_word_about_it_columns_of_source_and_language_are_sliced_by(tmp_path):
    """Where there are columns: in Parquet, and where a stage has made them. In JSON lines nobody looks for them."""
    rows = [{"text": "one two", "source": f"s{n % 2}", "language": "en" if n < 5 else None, "n": n} for n in range(8)]
    (tmp_path / "in").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in" / "a.parquet")
    write_documents(tmp_path / "lines" / "a.jsonl", rows)
    for reader, out in ((ParquetReader(str(tmp_path / "in")), "out"), (JsonlReader(str(tmp_path / "lines")), "plain")):
        stages = [reader, ScoreFilter(WordCountFilter(1)), JsonlWriter(str(tmp_path / out))]
        Pipeline("sliced", stages=stages).run(LocalExecutor(num_workers=0), quiet=True)
    slices = seen(tmp_path / "out").slices
    written = {name: {value: one.written.documents for value, one in slices[name].by_size()} for name in slices}

    assert written == {"source": {"s0": 4, "s1": 4}, "language": {"en": 5, None: 3}}
    assert seen(tmp_path / "plain").slices == {}


RECIPE = """
name: words
stages:
- JsonlReader: {file_paths: "${input}"}
- ScoreFilter: {filter_obj: {WordCountFilter: {min_words: 6}}}
- JsonlWriter: {path: "${output}"}
"""


@pytest.mark.parametrize("level", [None, "full", "counts", "off"])
def test_the_command_records_what_its_flags_say(corpus, tmp_path, level):
    (tmp_path / "words.yaml").write_text(RECIPE)
    given = ["run", tmp_path / "words.yaml", "--input", corpus, "--output", tmp_path / "out", "--workers", 0, "--quiet"]
    flags = ["--slice", "source", "--slice", "n", *([] if level is None else ["--observe", level])]
    done = CliRunner().invoke(app, [str(argument) for argument in (*given, *flags)])
    found = seen(tmp_path / "out")

    assert done.exit_code == 0, done.output
    assert len(found.tallies) == (0 if level == "off" else 1)
    assert sorted(found.slices) == ([] if level == "off" else ["n", "source"])
    shows_texts = any(window.kept for tally in found.tallies for window in tally.nearest) and bool(found.samples)
    assert shows_texts is (level in (None, "full"))


def test_the_command_refuses_a_level_that_there_is_not(corpus, tmp_path):
    (tmp_path / "words.yaml").write_text(RECIPE)
    given = ["run", str(tmp_path / "words.yaml"), "-i", str(corpus), "-o", str(tmp_path / "out"), "--observe", "some"]
    refused = CliRunner().invoke(app, given)

    assert refused.exit_code != 0
    assert "expected one of full, counts, off; got 'some'" in f"{refused.output}{refused.exception}"


@pytest.mark.parametrize("wrong", [{"level": "all"}, {"slices": "source"}, {"slices": (3,)}])
def test_a_wrong_word_is_refused(wrong):
    with pytest.raises(ConfigError, match="expected"):
        Observation(**wrong)


SCRIPT, SMILE = "<script>alert(1)</script>", "\U0001f600"
HOSTILE = [SCRIPT, "\u202eevil\u0000\u001b[2J", "x" * 1_000_000, SMILE * 900, "", "{" * 50]


def test_hostile_ids_and_texts_survive_as_text(tmp_path):
    names = [*HOSTILE[:2], None, 10**30, {"a": [1]}, True]
    rows = [{"id": name, "text": text} for name, text in zip(names, HOSTILE, strict=True)]
    path = tmp_path / "in" / "a.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    stages = [JsonlReader(str(path)), ScoreFilter(WordCountFilter(5)), JsonlWriter(str(tmp_path / "out"))]
    Pipeline("hostile", stages=stages).run(LocalExecutor(num_workers=0), quiet=True)
    shown = {example.text: example.id for example in seen(tmp_path / "out").sample("word_count", "word_count")}

    assert shown[SCRIPT] == SCRIPT
    assert max(map(len, shown)) == EXCERPT_CHARS
    assert shown["{" * 50] == "True"
    assert SMILE * EXCERPT_CHARS in shown


class Marks(ProcessingStage[DocumentBatch, DocumentBatch]):
    """A stage of somebody's own that measures."""

    name = "marks"

    def process(self, task):
        numbers = task.column("n").to_pylist()
        kept = [number % 10 != 0 for number in numbers]
        self.context.measure("tens", numbers, kept, (1, None), of=task, measure="number", amount="tokens")
        self.context.drop(task, [not keep for keep in kept], reason="tens", values=numbers)
        return task.filter(kept)


def test_a_stage_may_measure_by_itself(corpus, tmp_path):
    result = run(corpus, tmp_path / "out", Marks(), workers=2)
    tally = seen(tmp_path / "out").tally("marks", "tens")

    assert tally.amount == "tokens"
    assert tally.refused.num_documents == result.counts["marks"].dropped["tens"]
    assert tally.kept.num_documents == result.written
    assert tally.nearest[0].refused[0].value == 0
    assert tally.nearest[0].refused[0].text
    assert all(example.value % 10 == 0 for example in seen(tmp_path / "out").sample("marks", "tens"))


def test_a_stage_that_measures_outside_a_run_is_not_stopped():
    batch = DocumentBatch("d", pa.table({"n": [10, 11]}))

    assert Marks().process(batch).num_items == 1


class Shortens(RuleSet):
    """Rules of somebody's own; documents go on with the beginning of their texts."""

    def rules(self):
        return [Rule("few_letters", "letters", low=60)]

    def measure_document(self, text):
        return {"letters": float(len(text))}

    def rewrite_document(self, text):
        return text[:30]


def test_a_text_that_was_changed_is_shown_as_it_was_when_it_was_judged(corpus, tmp_path):
    stages = [ApplyRules(Shortens(), name="shortens"), ScoreFilter(VowelsFilter())]
    run(corpus, tmp_path / "out", *stages)
    found = seen(tmp_path / "out")
    run(corpus, tmp_path / "out", *stages, workers=3, fresh=True)

    assert encode_observations(seen(tmp_path / "out")) == encode_observations(found)
    assert min(len(example.text) for example in found.tally("shortens", "few_letters").nearest[0].kept) >= 60
    assert {len(example.text) for example in found.sample("vowels", "vowels")} == {30}


def test_documents_dropped_by_a_label_are_counted_by_label(corpus, tmp_path):
    """In place of values there are words: of each, how many documents were kept and refused."""
    stages = [KeepLabels("source", ("s0", "s1")), ScoreFilter(WordCountFilter(6))]
    result = run(corpus, tmp_path / "out", *stages)
    found = seen(tmp_path / "out")
    tally = found.tally("keep_labels", "other_label")
    run(corpus, tmp_path / "out", *stages, workers=3, fresh=True)

    assert encode_observations(seen(tmp_path / "out")) == encode_observations(found)
    assert (tally.num_kept, tally.num_refused) == (
        result.counts["keep_labels"].documents_out,
        result.counts["keep_labels"].dropped["other_label"],
    )
    assert tally.condition == "source in ['s0', 's1']"
    assert tally.labels is not None
    assert {label: (count.kept > 0, count.refused > 0) for label, count in tally.labels.by_size()} == {
        "s0": (True, False),
        "s1": (True, False),
        "s2": (False, True),
    }
    assert found.sample("keep_labels", "other_label")
