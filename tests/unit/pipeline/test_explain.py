"""What became of a document is told as it was: by what the run wrote, and by running it again."""

import gzip
import json
import os
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.pipeline.explain import explain_document
from gristmill.pipeline.explanation import changes_between, printable
from gristmill.pipeline.find_document import document_at, find_id
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication import ExactDeduplication, FuzzyDeduplication
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.filters import Filter, ScoreFilter
from gristmill.stages.text.filters.heuristic import MeanWordLengthFilter, WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader, ParquetReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.text.modifiers import Modify
from gristmill.stages.text.modifiers.string import UrlRemover
from gristmill.stages.text.modules import AddId, DocumentSplitter

HOSTILE = "\x1b[31m\u202e\r\n</script>\"'"
DOCUMENTS = [
    {"id": "kept", "text": "one two three four five six"},
    {"id": "short", "text": "a b"},
    {"id": "changed", "text": "look at http://example.com/page for all the rest of it"},
    {"id": "split", "text": "one two three four five ||| two and some more words here"},
    {"id": "poison", "text": "this one makes the stage fail always"},
    {"id": HOSTILE, "text": "words enough to be kept here \x1b[2J\u202e"},
]


class FailsOnPoison(ProcessingStage):
    name = "fails_on_poison"

    def process(self, task):
        if any("poison" in str(name) for name in task.column("id").to_pylist()):
            raise ValueError("cannot do poison")
        return task


class AddsChance(ProcessingStage):
    name = "adds_chance"

    def process(self, task):
        return task.with_column("chance", pa.array([uuid.uuid4().hex for _ in range(task.num_items)]))


class CountsWithAModel(ProcessingStage):
    """Needs its set-up, as a stage with a model does."""

    name = "counts_with_a_model"

    def outputs(self):
        return ["data"], ["words"]

    def setup(self, worker_metadata=None):
        self.separator = " "

    def process(self, task):
        counts = [len(text.split(self.separator)) for text in task.column("text").to_pylist()]
        return task.with_column("words", pa.array(counts))


class DropsByWeather(ProcessingStage):
    name = "drops_by_weather"

    def process(self, task):
        if os.environ.get("GRISTMILL_TEST_WEATHER") != "rain":
            return task
        mask = [True] * task.num_items
        self.context.drop(task, mask, reason="rain")
        return task.filter([False] * task.num_items)


def write_jsonl(path, documents=DOCUMENTS):
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return JsonlReader(str(path.parent))


def write_gzip(path, documents=DOCUMENTS):
    lines = "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)
    with gzip.open(f"{path}.gz", "wt", encoding="utf-8") as file:
        file.write(lines)
    return JsonlReader(str(path.parent))


def write_parquet(path, documents=DOCUMENTS):
    table = pa.table({"id": [str(d["id"]) for d in documents], "text": [d["text"] for d in documents]})
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=3)
    return ParquetReader(str(path.parent))


FORMATS = {"jsonl": write_jsonl, "gzip": write_gzip, "parquet": write_parquet}


def run(home, pipeline):
    return pipeline.run(LocalExecutor(num_workers=0), rejects_path=home / "rejects", max_quarantined=None, quiet=True)


@pytest.fixture(scope="module", params=list(FORMATS))
def finished(request, tmp_path_factory):
    """A run over all documents in one format, and its pipeline."""
    home = tmp_path_factory.mktemp(request.param)
    (home / "in").mkdir()
    reader = FORMATS[request.param](home / "in" / "docs.jsonl")
    stages = [
        reader,
        ScoreFilter([WordCountFilter(min_words=4), MeanWordLengthFilter(min_mean_word_length=2.0)]),
        Modify(UrlRemover()),
        FailsOnPoison(),
        DocumentSplitter("|||"),
        JsonlWriter(str(home / "out")),
    ]
    pipeline = Pipeline("explained", stages=stages)
    run(home, pipeline)
    return home, pipeline


def told(finished, document_id):
    home, pipeline = finished
    return pipeline.explain(home / "out", document_id)


def passages(explanation):
    return [(p.stage, p.outcome, p.already_gone) for p in explanation.passages]


def test_a_kept_document_is_shown_with_every_check_and_where_it_is_now(finished):
    found = told(finished, "kept")
    checks = {c.rule: (c.value, c.distance, c.keeps) for c in found.passages[0].checks}

    assert found.verdict == "kept"
    assert not found.disagreements
    assert checks["word_count"] == (6, 2, True)
    assert [(p.kind, p.line) for p in found.places] == [("output", 1)]
    assert found.source is not None
    assert (found.source.line, found.source.row) in ((1, None), (None, 0))
    assert any("committed" in sentence for sentence in found.history)
    assert "exactly" not in str(found)


def test_a_dropped_document_names_the_rule_and_is_asked_by_those_behind_it_too(finished):
    found = told(finished, "short")
    first = found.passages[0]

    assert found.verdict == "dropped by word_count_and_1_more: word_count"
    assert [(c.rule, c.value, c.threshold, c.distance, c.keeps) for c in first.checks] == [
        ("word_count", 2, "4 ≤ words ≤ 100000", -2, False),
        ("mean_word_length", 1.0, "2 ≤ characters per word ≤ 10", -1.0, False),
    ]
    assert passages(found)[1:] == [
        ("url_remover", "kept", True),
        ("fails_on_poison", "kept", True),
        ("document_splitter", "kept", True),
    ]
    assert found.places[0].kind == "reject"
    assert found.places[0].details["reason"] == "word_count"
    assert not found.disagreements


def test_what_a_modifier_took_out_is_shown_in_words(finished):
    found = told(finished, "changed")
    change = next(p for p in found.passages if p.stage == "url_remover").changes

    assert [(c.column, c.removed.strip()) for c in change] == [("text", "http://example.com/page")]
    assert found.verdict == "kept"
    assert not found.disagreements
    assert '- text: " http://example.com/page "' in str(found)


def test_every_document_that_one_was_split_into_is_followed(finished):
    found = told(finished, "split")

    assert passages(found)[-3:] == [
        ("document_splitter", "split", False),
        ("jsonl_writer", "kept", False),
        ("jsonl_writer", "kept", False),
    ]
    assert found.verdict == "kept, 2 of the 2 documents it was split into"
    assert [p.kind for p in found.places] == ["output", "output"]
    assert not found.disagreements


def test_a_quarantined_document_fails_again_and_shows_its_record(finished):
    found = told(finished, "poison")

    assert found.verdict == "in quarantine: fails_on_poison failed on it"
    assert found.passages[-1].outcome == "quarantined"
    assert "cannot do poison" in found.passages[-1].reason
    assert found.places[0].kind == "quarantine"
    assert "cannot do poison" in str(found.places[0].details["error"])
    assert not found.disagreements


def test_a_hostile_id_and_text_are_found_and_reach_the_terminal_escaped(finished):
    found = told(finished, HOSTILE)
    shown = str(found)

    assert found.verdict == "kept"
    assert all(line.isprintable() for line in shown.splitlines())
    assert "\\x1b[31m\\u202e\\r\\n</script>" in shown
    assert json.loads(json.dumps(found.to_json()))["document_id"] == HOSTILE


def test_ids_may_be_numbers_beside_texts(corpus):
    path = corpus / "in" / "docs.jsonl"
    path.write_text(path.read_text() + '{"id": 4711, "text": "a number is fine too"}\n')
    pipeline = pipeline_of(corpus, FailsOnPoison())
    run(corpus, pipeline)

    assert pipeline.explain(corpus / "out", "4711").verdict == "kept"
    assert pipeline.explain(corpus / "out", "kept").verdict == "kept"
    assert pipeline.explain(corpus / "out", "poison").verdict == "in quarantine: fails_on_poison failed on it"


def test_an_unknown_id_names_the_nearest_or_how_to_search(finished):
    home, pipeline = finished
    with pytest.raises(ConfigError, match=r"got 'kepd', which is not in all its input") as refused:
        pipeline.explain(home / "out", "kepd")
    assert "did you mean 'kept'" in str(refused.value)
    with pytest.raises(ConfigError, match="--source FILE:LINE explains a document without an id"):
        pipeline.explain(home / "out", "xxxxxxxxxxxxxxxxxxxxxxxx")


def test_without_the_pipeline_what_is_written_down_is_told(finished):
    home, _ = finished
    found = explain_document(None, home / "out" / ".gristmill", "short")

    assert found.verdict == "dropped by word_count_and_1_more: word_count"
    assert not found.passages
    assert "There is no pipeline to run again" in found.remarks[0]


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "in").mkdir()
    write_jsonl(tmp_path / "in" / "docs.jsonl")
    return tmp_path


def pipeline_of(home, *stages):
    return Pipeline("small", stages=[JsonlReader(str(home / "in")), *stages, JsonlWriter(str(home / "out"))])


def test_a_stage_that_gives_two_answers_is_named(corpus):
    pipeline = pipeline_of(corpus, AddsChance())
    run(corpus, pipeline)
    found = pipeline.explain(corpus / "out", "kept")

    assert found.disagreements[0].startswith("adds_chance: run twice on the same document it gives two results")
    assert "chance: the output has a different value from the re-run" in found.disagreements
    assert "DISAGREE" in str(found)


def test_a_stage_that_decides_by_something_else_than_the_document_contradicts_the_books(corpus, monkeypatch):
    pipeline = pipeline_of(corpus, DropsByWeather())
    run(corpus, pipeline)
    monkeypatch.setenv("GRISTMILL_TEST_WEATHER", "rain")
    found = pipeline.explain(corpus / "out", "kept")

    assert found.verdict == "dropped by drops_by_weather: rain"
    assert [said.partition(", but")[0] for said in found.disagreements] == [
        "in the re-run it is dropped",
        "drops_by_weather drops it for rain",
    ]


def test_a_stage_with_a_set_up_is_shown_from_what_was_written_unless_it_is_to_run(corpus):
    pipeline = pipeline_of(corpus, CountsWithAModel(), Filter(lambda words: words > 4, "words"))
    run(corpus, pipeline)
    written, again = (pipeline.explain(corpus / "out", "kept", with_models=models) for models in (False, True))
    unknown = pipeline_of(corpus, CountsWithAModel()).explain(corpus / "out", "poison")

    assert [(p.outcome, p.columns) for p in written.passages[:2]] == [("not run", {"words": 6}), ("kept", {})]
    assert [(p.outcome, p.columns) for p in again.passages[:2]] == [("kept", {"words": 6}), ("kept", {})]
    assert written.passages[1].checks == again.passages[1].checks
    assert written.passages[1].checks[0].value == 6
    assert written.verdict == again.verdict == "kept"
    assert written.disagreements == again.disagreements == ()
    assert "--with-models runs it" in unknown.passages[0].note


def test_where_the_input_is_gone_what_is_written_down_is_told(corpus):
    pipeline = pipeline_of(corpus, ScoreFilter(WordCountFilter(min_words=4)))
    run(corpus, pipeline)
    (corpus / "in" / "docs.jsonl").unlink()
    (rejects,) = (corpus / "rejects").glob("*.jsonl")
    found = pipeline.explain(corpus / "out", "short")

    assert found.verdict == "dropped by word_count: word_count"
    assert "The input is not there any more" in found.remarks[0]
    rejects.unlink()
    with pytest.raises(ConfigError, match="which is not in 0 of its 1 input files"):
        pipeline.explain(corpus / "out", "short")


def test_a_damaged_header_is_said(corpus):
    pipeline = pipeline_of(corpus)
    run(corpus, pipeline)
    (corpus / "out" / ".gristmill" / "header.json").write_bytes(b'{"format": \xff')

    with pytest.raises(ConfigError, match=r"header\.json: expected to read there what was run; it is damaged"):
        pipeline.explain(corpus / "out", "kept")


def test_another_threshold_than_the_run_had_is_said(corpus):
    run(corpus, pipeline_of(corpus, ScoreFilter(WordCountFilter(min_words=4))))
    found = pipeline_of(corpus, ScoreFilter(WordCountFilter(min_words=50))).explain(corpus / "out", "kept")

    assert "The pipeline is not the one of the run:" in found.remarks
    assert any("min_words" in remark for remark in found.remarks)
    assert any("in the re-run it is dropped, but it is in" in said for said in found.disagreements)


def test_an_id_that_the_run_has_made_leads_back_to_its_document(corpus):
    pipeline = pipeline_of(corpus, AddId("id", overwrite=True), ScoreFilter(WordCountFilter(min_words=4)))
    run(corpus, pipeline)

    assert pipeline.explain(corpus / "out", "docs_0").verdict == "kept"
    assert pipeline.explain(corpus / "out", "docs_1").verdict == "dropped by word_count: word_count"


def test_a_document_without_an_id_is_named_by_its_place(corpus):
    (corpus / "in" / "docs.jsonl").write_text('\n{"text": "a b"}\nbroken\n{"text": "c d"}\n')
    pipeline = pipeline_of(corpus, ScoreFilter(WordCountFilter(min_words=4)))
    run(corpus, pipeline)
    source = corpus / "in" / "docs.jsonl"
    found = pipeline.explain(corpus / "out", "", source=f"{source}:4")

    assert found.verdict == "dropped by word_count: word_count"
    assert found.passages[0].checks[0].value == 2
    for wrong in (f"{source}:3", f"{source}:99", f"{source}", "nowhere:1"):
        with pytest.raises(ConfigError, match=r"^--source: expected"):
            pipeline.explain(corpus / "out", "", source=wrong)


def test_a_partition_that_is_not_committed_contradicts_nothing(corpus):
    pipeline = pipeline_of(corpus, ScoreFilter(WordCountFilter(min_words=4)))
    run(corpus, pipeline)
    (corpus / "out" / "docs.jsonl").unlink()
    (corpus / "out" / ".gristmill" / "ledger.jsonl").write_text("")

    assert pipeline.explain(corpus / "out", "kept").disagreements == ()


def test_lines_are_found_however_they_are_escaped_and_wherever_they_end(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b'{"id": "\\u00e9t\\u00e9", "n": 1}\r\n\xff\n{"id":"other","url":"\xc3\xa9t\xc3\xa9"}\n[1]\n'
        b'{"id": "\xc3\xa9t\xc3\xa9", "n": 2}'
    )

    assert [(one.line, one.document["n"]) for one in find_id([str(path)], "été")] == [(1, 1), (5, 2)]
    assert [one.line for one in find_id([str(path)], "other")] == [3]
    assert find_id([str(path)], "n") == []
    last = document_at(str(path), 5)
    assert last is not None
    assert (last.document["n"], last.start) == (2, path.read_bytes().rindex(b'{"id"'))


def test_a_value_in_another_field_counts_only_where_no_id_is_equal(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"url": "x", "id": "1"}\n{"id": "x"}\n{"url": "y"}\n')

    assert [one.line for one in find_id([str(tmp_path / "a.jsonl")], "x")] == [2]
    assert [one.line for one in find_id([str(tmp_path / "a.jsonl")], "y")] == [3]


def test_changes_of_a_long_text_are_the_first_and_how_many_more():
    before = " ".join(f"w{n}" for n in range(100))
    after = " ".join(f"w{n}" if n % 5 else "X" for n in range(100))
    found = changes_between("text", before, after)

    assert (found[0].removed, found[0].added) == ("w0", "X")
    assert found[-1].added == "… and 8 more changes"


@pytest.mark.parametrize(
    "character", ["\x00", "\x1b", "\x7f", "\x9b", "\u200b", "\u2028", "\u202e", "\ue000", "\ud800"]
)
def test_no_character_that_moves_the_cursor_is_printed(character):
    assert printable(f"a{character}é中") == f"a{ascii(character)[1:-1]}é中"


@pytest.mark.slow
@pytest.mark.parametrize("stage", [Exchange("id"), ExactDeduplication(id_field="id")], ids=["exchange", "duplicates"])
def test_what_brings_documents_together_drops_none_by_itself(tmp_path, stage):
    texts = ["one two", "three four", "one two", "five"]
    lines = [json.dumps({"id": name, "text": text}) for name, text in zip("abcd", texts, strict=True)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    out = str(tmp_path / "out")
    stages = [JsonlReader(str(tmp_path / "in.jsonl")), ScoreFilter(WordCountFilter(2)), stage, JsonlWriter(out)]
    pipeline = Pipeline("together", stages=stages)
    pipeline.run(LocalExecutor(num_workers=0), quiet=True)
    kept, twin, short = (pipeline.explain(out, name) for name in "acd")

    assert kept.verdict == "kept"
    assert twin.verdict == ("kept" if isinstance(stage, Exchange) else "removed as a duplicate of a")
    assert short.verdict == "dropped by word_count: word_count"
    assert [told.disagreements for told in (kept, twin, short)] == [(), (), ()]


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False], ids=["by a column", "by its place"])
@pytest.mark.parametrize("form", list(FORMATS))
def test_a_duplicate_names_the_document_it_lost_to_in_every_format(tmp_path, form, named):
    """Behind the deduplication is a filter, which is not run again: what it did is read from the rejects."""
    texts = {"short": "one", "first": "one two three", "second": "one two three", "last": "four five"}
    (tmp_path / "in").mkdir()
    documents = [{"id": name, "text": text} for name, text in texts.items()]
    reader = FORMATS[form](tmp_path / "in" / "docs.jsonl", documents)
    stages = [ExactDeduplication(id_field="id" if named else None), ScoreFilter(WordCountFilter(2))]
    pipeline = Pipeline("twins", stages=[reader, *stages, JsonlWriter(str(tmp_path / "out"))])
    run(tmp_path, pipeline)
    short, first, second, last = (pipeline.explain(tmp_path / "out", name) for name in texts)
    [lost_to] = second.duplicates

    assert second.verdict == f"removed as a duplicate of {lost_to.kept_id}"
    assert lost_to.kept_id == ("first" if named else "first (docs:1)")
    assert lost_to.similarity == 1
    assert {lost_to.source, lost_to.kept_source} == {str(next((tmp_path / "in").iterdir()))}
    assert second.source is not None
    assert (second.source.line, second.source.row) in ((3, None), (None, 2))
    assert [place.kind for place in second.places] == ["reject"]
    assert (first.verdict, first.duplicates, last.verdict) == ("kept", (), "kept")
    assert short.verdict == "dropped by word_count: word_count"
    assert [told.disagreements for told in (short, first, second, last)] == [()] * 4


@pytest.mark.slow
def test_a_near_duplicate_says_how_much_of_it_is_in_the_one_that_stays(tmp_path):
    words = [f"word{n}" for n in range(40)]
    documents = {"whole": words, "near": [*words[:-1], "end"], "else": words[::-1]}
    (tmp_path / "in").mkdir()
    lines = [{"id": name, "text": " ".join(text)} for name, text in documents.items()]
    reader = write_jsonl(tmp_path / "in" / "docs.jsonl", lines)
    stages = [reader, FuzzyDeduplication(id_field="id"), JsonlWriter(str(tmp_path / "out"))]
    pipeline = Pipeline("near", stages=stages)
    run(tmp_path, pipeline)
    told = {name: pipeline.explain(tmp_path / "out", name) for name in documents}
    [lost_to] = told["near"].duplicates

    assert {name: found.verdict for name, found in told.items()} == {
        "whole": "kept",
        "near": "removed as a duplicate of whole",
        "else": "kept",
    }
    assert lost_to.similarity == pytest.approx(
        35 / 37
    )  # of 36 shingles of five words each has one that the other lacks
    assert "lost to     whole" in str(told["near"])
    assert not any(found.disagreements for found in told.values())


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "parquet"])
def test_input_and_output_on_a_store_are_searched_too(tmp_path, suffix):
    import fsspec

    documents = [{"id": name, "text": text} for name, text in (("a", "one two"), ("b", "three"), ("c", "four five"))]
    lines = "".join(json.dumps(document) + "\n" for document in documents).encode()
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(documents), tmp_path / "in.parquet")
        content = (tmp_path / "in.parquet").read_bytes()
    else:
        content = gzip.compress(lines) if suffix.endswith("gz") else lines
    place = f"/explain-{tmp_path.name}-{suffix}"
    fsspec.filesystem("memory").pipe(f"{place}/in.{suffix}", content)
    reader = ParquetReader if suffix == "parquet" else JsonlReader
    stages = [
        reader(f"memory:/{place}/in.{suffix}"),
        ScoreFilter(WordCountFilter(2)),
        JsonlWriter(f"memory:/{place}/out"),
    ]
    pipeline = Pipeline("store", stages=stages)
    pipeline.run(LocalExecutor(num_workers=0), checkpoint_path=str(tmp_path / "run"), quiet=True)
    kept, short = (pipeline.explain(tmp_path / "run", name) for name in "cb")

    assert (kept.verdict, kept.disagreements) == ("kept", ())
    assert (short.verdict, short.disagreements) == ("dropped by word_count: word_count", ())
    assert [found.path.startswith("memory:") for found in kept.places] == [True]
    with pytest.raises(ConfigError, match="got 'zz', which is not in all its input"):
        pipeline.explain(tmp_path / "run", "zz")


def test_a_run_directory_on_a_store_is_refused_with_what_to_do_instead():
    with pytest.raises(
        ConfigError, match=r"^explain: expected a directory on a disk.*`gristmill report` of a store too"
    ):
        Pipeline("p", stages=[]).explain("memory://b/out", "a")
