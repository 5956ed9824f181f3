"""More of what is published for NeMo Curator, written again by us, with only the package name changed.

Each test is a script: imports inside, relative paths, names and parameters as its documentation has them. They run in
this process; `test_published_examples.py` has some that start workers.
"""

import json
from pathlib import Path

import pytest
from tests.jsonl_files import read_documents, write_documents

from gristmill.backends.local import LocalExecutor

pytestmark = pytest.mark.slow

PROSE = "The miller walked to the river, and he counted all of the sacks that they had brought to the mill that day. "


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in ("gristmill.pipeline.pipeline", "gristmill.deduplication.exact", "gristmill.deduplication.fuzzy"):
        monkeypatch.setattr(f"{place}.default_executor", lambda: LocalExecutor(num_workers=0), raising=False)
    documents = [
        {"id": "long", "text": PROSE * 4, "url": "https://example.org/a"},
        {"id": "short", "text": "Closed on Mondays.", "url": "https://example.org/b"},
        {"id": "broken", "text": f"The cafÃ© by the mill.\n\n\n\nSee https://example.org now. {PROSE}", "url": ""},
        {"id": "again", "text": PROSE * 4, "url": "https://example.org/c"},
    ]
    write_documents(tmp_path / "data" / "books.jsonl", documents)
    return tmp_path


def kept(folder):
    return [document["id"] for document in read_documents(Path(folder))]


def test_quality_filtering_with_the_older_import_paths():
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.filters import WordCountFilter
    from gristmill.stages.text.io.reader import JsonlReader
    from gristmill.stages.text.io.writer import JsonlWriter
    from gristmill.stages.text.modules import ScoreFilter

    pipeline = Pipeline(name="quality_filtering")
    pipeline.add_stage(JsonlReader(file_paths="data/*.jsonl", fields=["text", "id"]))
    pipeline.add_stage(
        ScoreFilter(filter_obj=WordCountFilter(min_words=80), text_field="text", score_field="word_count")
    )
    pipeline.add_stage(JsonlWriter(path="long_books/"))
    pipeline.run()

    found = read_documents(Path("long_books"))
    assert [(document["id"], document["word_count"]) for document in found] == [("long", 88), ("again", 88)]


def test_a_chain_of_heuristic_filters_first_scored_then_filtered():
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.filters import Filter, Score, ScoreFilter
    from gristmill.stages.text.filters.heuristic import MeanWordLengthFilter, NonAlphaNumericFilter, WordCountFilter
    from gristmill.stages.text.filters.heuristic.repetition import RepeatedLinesFilter
    from gristmill.stages.text.io.reader import JsonlReader

    pipeline = Pipeline("heuristics", description="Score first, look, then filter")
    pipeline.add_stage(JsonlReader("data", files_per_partition=1))
    pipeline.add_stage(Score(WordCountFilter(), score_field="words"))
    pipeline.add_stage(Score([len, str.upper], score_field=["chars", "loud"]))
    pipeline.add_stage(Filter(lambda words: words >= 10, filter_field="words"))
    pipeline.add_stage(ScoreFilter([NonAlphaNumericFilter(), RepeatedLinesFilter()], score_field=["alpha", None]))
    pipeline.add_stage(ScoreFilter(MeanWordLengthFilter(3, 10)))
    results = pipeline.run()

    frame = results[0].to_pandas()
    assert frame["id"].tolist() == ["long", "broken", "again"]
    assert frame["chars"].tolist() == frame["text"].str.len().tolist()
    assert frame["alpha"].between(0, 0.25).all()


def test_text_cleaning():
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.io.reader import JsonlReader
    from gristmill.stages.text.io.writer import JsonlWriter
    from gristmill.stages.text.modifiers import Modify, NewlineNormalizer, UnicodeReformatter, UrlRemover

    pipeline = Pipeline(name="text_cleaning")
    pipeline.add_stage(JsonlReader(file_paths="data/", fields=["id", "text"]))
    pipeline.add_stage(Modify(UnicodeReformatter()))
    pipeline.add_stage(Modify(modifier_fn=[NewlineNormalizer(), UrlRemover()], input_fields="text"))
    pipeline.add_stage(Modify(str.strip, input_fields="text", output_fields="stripped"))
    pipeline.add_stage(JsonlWriter(path="clean/"))
    pipeline.run()

    cleaned = next(d for d in read_documents(Path("clean")) if d["id"] == "broken")
    assert cleaned["text"].startswith("The café by the mill.\n\nSee  now. The miller")
    assert cleaned["stripped"] == cleaned["text"].strip()


def test_a_filter_of_ones_own():
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.filters import DocumentFilter, ScoreFilter
    from gristmill.stages.text.io.reader import JsonlReader

    class CustomWordFilter(DocumentFilter):
        def __init__(self, target_words, min_occurrences=1):
            super().__init__()
            self._target_words = set(target_words)
            self._min_occurrences = min_occurrences
            self._name = "custom_word_filter"

        def score_document(self, text: str) -> int:
            return sum(word in self._target_words for word in text.lower().split())

        def keep_document(self, score: int) -> bool:
            return score >= self._min_occurrences

    pipeline = Pipeline("custom")
    pipeline.add_stage(JsonlReader("data"))
    pipeline.add_stage(ScoreFilter(CustomWordFilter(["miller", "sacks"], 2), score_field="target_count"))
    results = pipeline.run()

    assert results[0].to_pandas()["target_count"].tolist() == [8, 2, 8]
    assert results.dropped == {"custom_word_filter": {"custom_word_filter": 1}}


def test_a_modifier_of_ones_own():
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.io.reader import JsonlReader
    from gristmill.stages.text.modifiers import DocumentModifier, Modify

    class Shorten(DocumentModifier):
        def __init__(self, chars: int = 10):
            super().__init__()
            self.chars = chars

        def modify_document(self, text: str) -> str:
            return text[: self.chars]

    results = Pipeline("modify", stages=[JsonlReader("data"), Modify(Shorten(3))]).run()
    assert results[0].to_pandas()["text"].tolist() == ["The", "Clo", "The", "The"]


def test_ids_then_segments_then_documents_again():
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.filters import ScoreFilter
    from gristmill.stages.text.filters.heuristic import WordCountFilter
    from gristmill.stages.text.io.reader import JsonlReader
    from gristmill.stages.text.io.writer import JsonlWriter
    from gristmill.stages.text.modules import AddId, DocumentJoiner, DocumentSplitter

    pipeline = Pipeline(name="segments")
    pipeline.add_stage(JsonlReader(file_paths="data/", fields=["text"]))
    pipeline.add_stage(AddId(id_field="doc_id", id_prefix="book"))
    pipeline.add_stage(DocumentSplitter(separator=". ", text_field="text", segment_id_field="segment_id"))
    pipeline.add_stage(ScoreFilter(WordCountFilter(min_words=3)))
    pipeline.add_stage(DocumentJoiner(separator=". ", document_id_field="doc_id", segment_id_field="segment_id"))
    pipeline.add_stage(JsonlWriter("joined"))
    pipeline.run()

    segments = [[s for s in d["text"].split(". ") if len(s.split()) >= 3] for d in read_documents(Path("data"))]
    joined = read_documents(Path("joined"))
    assert sorted(document["text"] for document in joined) == sorted(". ".join(some) for some in segments)
    assert all(document["doc_id"].startswith("book") for document in joined)
    assert "segment_id" not in joined[0]


def test_identify_the_language_of_documents():
    from gristmill.models.fasttext_model import bundled_model
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.filters import Filter, ScoreFilter
    from gristmill.stages.text.filters.fasttext import FastTextLangId
    from gristmill.stages.text.io.reader import JsonlReader

    pipeline = Pipeline(name="language_id")
    pipeline.add_stage(JsonlReader(file_paths="data"))
    pipeline.add_stage(
        ScoreFilter(FastTextLangId(model_path=bundled_model(), min_langid_score=0.3), score_field="language")
    )
    pipeline.add_stage(Filter(lambda language: language.upper() == "EN", filter_field="language"))
    results = pipeline.run()

    assert "long" in results[0].to_pandas()["id"].tolist()


@pytest.mark.parametrize("method", ["exact", "fuzzy"])
def test_duplicates_are_identified_by_one_workflow_and_removed_by_another(method):
    from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
    from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow
    from gristmill.stages.text.deduplication.removal_workflow import TextDuplicatesRemovalWorkflow

    here = LocalExecutor(num_workers=0)
    common = {"input_path": "data", "output_path": "results", "input_filetype": "jsonl", "text_field": "text"}
    if method == "exact":
        workflow = ExactDeduplicationWorkflow(**common, assign_id=True, perform_removal=False)
    else:
        banding = {"char_ngrams": 24, "num_bands": 20, "minhashes_per_band": 13, "bands_per_iteration": 5}
        workflow = FuzzyDeduplicationWorkflow(**common, cache_path="cache", perform_removal=False, seed=42, **banding)
    found = workflow.run(executor=here)
    with pytest.warns(UserWarning, match="id_generator_path has no effect here"):
        removal = TextDuplicatesRemovalWorkflow(
            input_path="data",
            ids_to_remove_path=f"results/{method.capitalize()}DuplicateIds",
            output_path="deduplicated",
            input_filetype="jsonl",
            id_field="_curator_dedup_id",
            duplicate_id_field="_curator_dedup_id",
            id_generator_path=f"results/{method}_id_generator.json",
            output_filetype="jsonl",
        )
    removed = removal.run(executor=here)

    assert found.get_metadata("num_duplicates") == 1
    assert removed.get_metadata("num_duplicates_removed") == 1
    assert kept("deduplicated") == ["long", "short", "broken"]


def test_a_stage_as_a_dataclass_with_a_set_up_on_the_node_and_batches():
    from dataclasses import dataclass

    import pandas as pd

    from gristmill.backends.base import NodeInfo, WorkerMetadata
    from gristmill.pipeline import Pipeline
    from gristmill.stages.base import ProcessingStage
    from gristmill.stages.resources import Resources
    from gristmill.stages.text.io.reader import JsonlReader
    from gristmill.tasks import DocumentBatch

    @dataclass
    class SentimentStage(ProcessingStage[DocumentBatch, DocumentBatch]):
        model_name: str = "tiny"
        text_field: str = "text"
        name: str = "sentiment"
        batch_size: int = 4
        resources: Resources = Resources(cpus=0.5)

        def inputs(self) -> tuple[list[str], list[str]]:
            return ["data"], [self.text_field]

        def outputs(self) -> tuple[list[str], list[str]]:
            return ["data"], [self.text_field, "sentiment"]

        def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None):
            Path("model.json").write_text(json.dumps({"good": ["bread", "river"]}))

        def setup(self, worker_metadata: WorkerMetadata | None = None):
            self.words = json.loads(Path("model.json").read_text())["good"]

        def process_batch(self, tasks: list[DocumentBatch]) -> list[DocumentBatch]:
            return [self._one(task) for task in tasks]

        def process(self, task: DocumentBatch) -> DocumentBatch:
            return self._one(task)

        def _one(self, task: DocumentBatch) -> DocumentBatch:
            df = task.to_pandas().copy()
            df["sentiment"] = [float(sum(word in text for word in self.words)) for text in df[self.text_field]]
            return DocumentBatch(
                task_id=f"{task.task_id}_{self.name}",
                dataset_name=task.dataset_name,
                data=df,
                _metadata=task._metadata,
                _stage_perf=task._stage_perf,
            )

    results = Pipeline("sentiment", stages=[JsonlReader("data", fields=["id", "text"]), SentimentStage()]).run()

    frame = pd.concat([task.to_pandas() for task in results])
    assert frame["sentiment"].tolist() == [1.0, 0.0, 1.0, 1.0]
    assert [perf.stage_name for perf in results[0]._stage_perf] == ["jsonl_reader", "sentiment"]


def test_parquet_in_and_out_with_options_for_the_inner_stages():
    import pandas as pd

    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.io.reader import JsonlReader, ParquetReader
    from gristmill.stages.text.io.writer import ParquetWriter

    Pipeline("convert", stages=[JsonlReader("data"), ParquetWriter("tables/", write_kwargs={"index": False})]).run()
    reader = ParquetReader(
        file_paths="tables/", files_per_partition=2, fields=["id", "url"], read_kwargs={"engine": "pyarrow"}
    ).with_({"parquet_reader": {"name": "renamed", "batch_size": 2}})
    results = Pipeline("read", stages=[reader, ParquetWriter("out/", mode="overwrite")]).run()

    assert list(results.stage_metrics) == ["renamed", "parquet_writer"]
    assert pd.read_parquet("out")["id"].tolist() == ["long", "short", "broken", "again"]


def test_a_source_of_ones_own_is_listed_fetched_and_extracted():
    from collections.abc import Iterator

    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.download import (
        DocumentDownloader,
        DocumentDownloadExtractStage,
        DocumentExtractor,
        DocumentIterator,
        URLGenerator,
    )
    from gristmill.stages.text.io.writer import JsonlWriter

    class Pages(URLGenerator):
        def generate_urls(self) -> list[str]:
            return [f"https://example.org/{name}.txt" for name in ("one", "two")]

    class Fetched(DocumentDownloader):
        def _get_output_filename(self, url: str) -> str:
            return url.rpartition("/")[2]

        def _download_to_path(self, url: str, path: str) -> tuple[bool, str | None]:
            Path(path).write_text(f"first line of {url}\nsecond line\n")
            return True, None

    class Lines(DocumentIterator):
        def iterate(self, file_path: str) -> Iterator[dict[str, str]]:
            for number, line in enumerate(Path(file_path).read_text().splitlines()):
                yield {"line": str(number), "content": line}

        def output_columns(self) -> list[str]:
            return ["line", "content"]

    class Texts(DocumentExtractor):
        def extract(self, record: dict[str, str]) -> dict[str, str] | None:
            return {"text": record["content"].upper()} if record["line"] == "0" else None

        def input_columns(self) -> list[str]:
            return ["line", "content"]

        def output_columns(self) -> list[str]:
            return ["text"]

    source = DocumentDownloadExtractStage(
        url_generator=Pages(), downloader=Fetched("downloads"), iterator=Lines(), extractor=Texts()
    )
    Pipeline("download", stages=[source, JsonlWriter("pages")]).run()

    texts = [document["text"] for document in read_documents(Path("pages"))]
    assert texts == [f"FIRST LINE OF HTTPS://EXAMPLE.ORG/{name}.TXT" for name in ("ONE", "TWO")]


def test_times_of_stages_are_collected_from_the_results():
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.filters import ScoreFilter
    from gristmill.stages.text.filters.heuristic import WordCountFilter
    from gristmill.stages.text.io.reader import JsonlReader
    from gristmill.tasks.utils import TaskPerfUtils

    results = Pipeline("timed", stages=[JsonlReader("data"), ScoreFilter(WordCountFilter(10))]).run()
    metrics = TaskPerfUtils.collect_stage_metrics(results)

    assert metrics["word_count"]["num_items_processed"].tolist() == [4.0]
    assert TaskPerfUtils.aggregate_task_metrics(results)["jsonl_reader_process_time_sum"] >= 0
