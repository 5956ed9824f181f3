"""Deduplication in the middle of a pipeline: what it drops, why, to whom each lost, and what the user is told."""

import gzip
import json
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.deduplication_forms import Passes
from tests.jsonl_files import contents, read_documents, write_documents
from tests.near_duplicates import make_corpus

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, ResumeRefused, StageError
from gristmill.pipeline import Pipeline
from gristmill.stages.deduplication import (
    ExactDeduplication,
    FuzzyDeduplication,
    PartDeduplication,
    SemanticDeduplication,
)
from gristmill.stages.exchange import Shuffle
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter, ParquetWriter
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)


@pytest.fixture
def corpus(tmp_path):
    """Near-duplicates, copies of some documents, short ones, and a line that is none."""
    made = make_corpus(num_documents=40)
    made.documents |= {f"{key}-copy": words for key, words in list(made.documents.items())[:10]}
    made.documents |= {f"short-{number}": ["too", "short"] for number in range(5)}
    made.write(tmp_path / "in", num_files=3, order=2)
    with (tmp_path / "in" / "001.jsonl").open("a") as file:
        file.write("not a document\n")
    return tmp_path / "in"


def run(source, out, *stages, executor=HERE, **options):
    pipeline = Pipeline("curate", stages=[JsonlReader(str(source)), *stages, JsonlWriter(str(out))])
    return pipeline.run(executor, quiet=True, **options)


def words(least=50):
    return ScoreFilter(WordCountFilter(min_words=least))


def ids(directory):
    return [document["id"] for document in read_documents(directory)]


def test_the_books_balance_and_duplicates_are_drops_by_reason(corpus, tmp_path):
    result = run(
        corpus, tmp_path / "out", words(), ExactDeduplication(id_field="id"), FuzzyDeduplication(id_field="id")
    )

    assert result.balanced
    assert result.read == result.written + result.dropped_total + result.quarantined
    assert result.quarantined == 1
    assert result.dropped["word_count"] == {"word_count": 5}
    assert result.dropped["exact_deduplication"] == {"exact_duplicate": 10}
    assert list(result.dropped["fuzzy_deduplication"]) == ["fuzzy_duplicate"]
    assert list(result.counts) == [
        "jsonl_reader",
        "word_count",
        "exact_deduplication_rows",
        "exact_deduplication_rows_read",
        "exact_deduplication",
        "fuzzy_deduplication",
        "jsonl_writer",
    ]


def test_one_pipeline_gives_what_the_steps_give_one_after_another(corpus, tmp_path):
    stages = [words(), ExactDeduplication(id_field="id"), Passes(), FuzzyDeduplication(id_field="id"), words(60)]
    run(corpus, tmp_path / "whole", *stages)
    source = corpus
    for number, stage in enumerate(stages):
        run(source, tmp_path / f"step-{number}", stage)
        source = tmp_path / f"step-{number}"

    assert contents(tmp_path / "whole")
    assert contents(tmp_path / "whole") == contents(source)


@pytest.mark.parametrize("ahead", [[], [Passes()]], ids=["read again", "put down"])
def test_a_rejected_document_names_the_one_it_lost_to(corpus, tmp_path, ahead):
    stages = [*ahead, FuzzyDeduplication(id_field="id", jaccard_threshold=0.7)]
    run(corpus, tmp_path / "out", *stages, rejects_path=tmp_path / "rejects")
    rejects = read_documents(tmp_path / "rejects")
    [listed] = (tmp_path / "out" / ".gristmill").rglob("duplicates.parquet")
    rows = {row["id"]: row for row in pq.read_table(listed).to_pylist()}

    assert {document["id"] for document in rejects} == set(rows)
    kept = set(ids(tmp_path / "out"))
    for document in rejects:
        row = rows[document["id"]]
        assert document["reject_stage"] == "fuzzy_deduplication"
        assert document["reject_reason"] == "fuzzy_duplicate"
        assert document["reject_lost_to"] == row["kept_id"]
        assert document["reject_lost_to"] in kept
        assert document["reject_value"] == pytest.approx(row["similarity"])
        assert document["reject_threshold"] == "jaccard < 0.7"
        assert document["text"]


def test_the_run_says_what_was_found_and_where_and_leaves_nothing_else_behind(corpus, tmp_path):
    result = run(corpus, tmp_path / "out", words(), ExactDeduplication(id_field="id"))
    home = tmp_path / "out" / ".gristmill" / "search" / "exact_deduplication"

    assert result.found["exact_deduplication"]["num_duplicates"] == 10
    assert f"duplicates   {home}/duplicates.parquet" in str(result)
    assert sorted(path.name for path in home.iterdir()) == [
        "consulted.json",
        "duplicates.parquet",
        "found.json",
        "report.json",
    ]
    assert not list((tmp_path / "out" / ".gristmill").glob("exchange-*"))
    assert json.loads((home / "report.json").read_text())["cluster_sizes"] == {"2": 10}


def test_the_same_call_again_changes_nothing_and_another_threshold_is_refused(corpus, tmp_path):
    first = run(corpus, tmp_path / "out", words(), FuzzyDeduplication())
    before = contents(tmp_path / "out")
    again = run(corpus, tmp_path / "out", words(), FuzzyDeduplication())

    assert again.already_finished
    assert contents(tmp_path / "out") == before
    assert again.found == first.found
    with pytest.raises(ResumeRefused, match="jaccard_threshold"):
        run(corpus, tmp_path / "out", words(), FuzzyDeduplication(jaccard_threshold=0.9))
    run(corpus, tmp_path / "out", words(), FuzzyDeduplication(alarm_share=0.1))  # only the report would differ
    fresh = run(corpus, tmp_path / "out", words(), FuzzyDeduplication(jaccard_threshold=0.95), fresh=True)
    assert fresh.written > first.written


def test_an_output_that_was_removed_is_made_again(corpus, tmp_path):
    run(corpus, tmp_path / "out", words(), ExactDeduplication(), FuzzyDeduplication())
    before = contents(tmp_path / "out")
    (tmp_path / "out" / "001.jsonl").unlink()
    run(corpus, tmp_path / "out", words(), ExactDeduplication(), FuzzyDeduplication())

    assert contents(tmp_path / "out") == before


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_gives_the_same_bytes(corpus, tmp_path, workers):
    stages = [words(), ExactDeduplication(keep="longest"), FuzzyDeduplication(), PartDeduplication(min_chars=10)]
    run(corpus, tmp_path / "alone", *stages, rejects_path=tmp_path / "rejects-alone")
    executor = LocalExecutor(num_workers=workers)
    run(corpus, tmp_path / "several", *stages, executor=executor, rejects_path=tmp_path / "rejects-several")

    assert contents(tmp_path / "alone") == contents(tmp_path / "several")
    assert contents(tmp_path / "rejects-alone") == contents(tmp_path / "rejects-several")


def test_a_file_that_is_read_in_many_batches(tmp_path):
    (tmp_path / "in").mkdir()
    lines = [json.dumps({"id": str(n), "text": f"text {n % 300} " + "word " * 100}) for n in range(1000)]
    (tmp_path / "in" / "a.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    for name, stages in (("direct", []), ("behind", [Passes()])):
        reader, writer = JsonlReader(str(tmp_path / "in"), blocksize="64KiB"), JsonlWriter(str(tmp_path / name))
        result = Pipeline("p", stages=[reader, *stages, ExactDeduplication(), writer]).run(HERE, quiet=True)
        assert len(result.output_files) > 2
        assert ids(tmp_path / name) == [str(n) for n in range(300)]


def test_batches_in_memory_and_a_pipeline_without_a_writer():
    batches = [DocumentBatch("x", pa.table({"text": [f"t{k % 3}", f"t{k}"], "n": [k, k]})) for k in range(5)]
    result = Pipeline("memory", stages=[ExactDeduplication()]).run(HERE, batches, quiet=True)
    left = [text for task in result for text in task.column("text").to_pylist()]

    assert left == ["t0", "t1", "t2", "t3", "t4"]
    assert result.dropped == {"exact_deduplication": {"exact_duplicate": 5}}


def test_behind_an_exchange_the_first_is_the_first_there(corpus, tmp_path):
    result = run(corpus, tmp_path / "out", words(), Shuffle(seed=3), ExactDeduplication())

    assert result.dropped["exact_deduplication"] == {"exact_duplicate": 10}
    assert len({document["text"] for document in read_documents(tmp_path / "out")}) == result.written


def test_vectors_of_a_stage_ahead(tmp_path):
    class Embed(Passes):
        name = "embed"

        def outputs(self):
            return ["data"], ["embeddings"]

        def process(self, task):
            vectors = [[1.0, n / 1000] if n < 5 else [0.0, float(n)] for n in task.column("n").to_pylist()]
            return task.with_column("embeddings", pa.array(vectors, pa.list_(pa.float32())))

    write_documents(tmp_path / "in" / "a.jsonl", [{"n": n} for n in range(7)])
    stages = [JsonlReader(str(tmp_path / "in")), Embed(), SemanticDeduplication(2, eps=0.01)]
    result = Pipeline("p", stages=[*stages, ParquetWriter(str(tmp_path / "out"))]).run(HERE, quiet=True)

    assert result.dropped == {"semantic_deduplication": {"semantic_duplicate": 5}}
    assert result.written == 2


def test_a_column_nobody_has_is_not_passed_over_in_silence(corpus, tmp_path):
    class AddsSomething(Passes):
        name = "adds_something"
        adds_only_declared_columns = False

    result = run(corpus, tmp_path / "out", AddsSomething(), ExactDeduplication("txt"))
    assert any("is 'txt' the right column?" in message for message in result.messages)
    with pytest.raises(ConfigError, match="did you mean 'text'"):
        run(corpus, tmp_path / "other", ExactDeduplication("txt"))


def test_a_stage_called_by_itself_says_what_it_needs():
    with pytest.raises(StageError, match="expected to be a stage of a pipeline"):
        ExactDeduplication().process(DocumentBatch("x", pa.table({"text": ["a"]})))
    with pytest.raises(ConfigError, match="expected a reader before 'exact_deduplication'"):
        Pipeline("p", stages=[ExactDeduplication()]).run(HERE, quiet=True)


def test_an_index_needs_a_run_that_can_be_found_again(tmp_path):
    batch = DocumentBatch("x", pa.table({"text": ["a"]}))
    with pytest.raises(ConfigError, match="ends in a writer"):
        Pipeline("p", stages=[ExactDeduplication(index=str(tmp_path / "i"))]).run(HERE, [batch], quiet=True)


def test_a_limit_on_failures_holds_for_the_search_too(tmp_path):
    lines = [json.dumps({"id": n, "text": f"text {n}"}) if n % 3 else "broken" for n in range(3000)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("\n".join(lines) + "\n")
    result = run(tmp_path / "in", tmp_path / "out", ExactDeduplication(), max_quarantined=None)

    assert (result.read, result.written, result.quarantined) == (3000, 2000, 1000)


def test_it_runs_in_a_thread_where_signals_cannot_be_handled(corpus, tmp_path):
    results = []
    thread = threading.Thread(target=lambda: results.append(run(corpus, tmp_path / "out", ExactDeduplication())))
    thread.start()
    thread.join()

    assert results[0].balanced
