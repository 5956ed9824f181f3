"""`Decontaminate`: drop documents that share n words in a row with a benchmark."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gristmill.kernels.arrow_arrays import from_bools, from_numbers
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.decontamination.benchmark_ngrams import BenchmarkNgrams, shared_words
from gristmill.stages.text.decontamination.ngrams import find_ngrams
from gristmill.stages.text.judging.statistics import texts_of_batch
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.storage.file_system import absolute
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_texts

BENCHMARK_FIELD, NGRAM_FIELD = "contaminated_by", "contaminating_words"


@dataclass(eq=False)
class Decontaminate(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Drop documents that hold at least `min_hits` n-grams of the benchmarks below `benchmarks`.

    An n-gram is `ngram_words` words in a row, after case, accents and punctuation are folded away. 13 is what GPT-3's
    authors used. The reason a document is dropped for is the benchmark's name. With `keep_only_contaminated` it is the
    other way round: those documents come out, with the columns `contaminated_by` and `contaminating_words`.
    """

    adds_only_declared_columns: ClassVar[bool] = True

    benchmarks: str
    ngram_words: int = 13
    text_field: str = "text"
    min_hits: int = 1
    keep_only_contaminated: bool = False
    name: str = field(default="decontaminate", kw_only=True)

    def __post_init__(self) -> None:
        self._known = BenchmarkNgrams(self.benchmarks, self.ngram_words)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [BENCHMARK_FIELD, NGRAM_FIELD] if self.keep_only_contaminated else []

    def check_ready(self) -> None:
        # Not on the n-grams that workers are given: the texts would travel to each of them.
        _ = BenchmarkNgrams(self.benchmarks, self.ngram_words).texts

    def make_paths_absolute(self) -> None:
        self.benchmarks = absolute(self.benchmarks)
        self._known = BenchmarkNgrams(self.benchmarks, self.ngram_words)

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        _ = self._known.hashes

    def process(self, task: DocumentBatch) -> DocumentBatch:
        first, hits = find_ngrams(texts_of_batch(task, self.text_field), self.ngram_words, self._known.hashes)
        found = (first >= 0) & (hits >= self.min_hits)
        origins = [self._known.text_of(place) if hit else ("", "") for place, hit in zip(first, found, strict=True)]
        if self.keep_only_contaminated:
            self.context.drop(task, from_bools(~found), reason="clean")
            return self._marked(task.filter(from_bools(found)), [origin for origin in origins if origin[0]])
        for benchmark in sorted({name for (name, _), hit in zip(origins, found, strict=True) if hit}):
            own = np.array([name == benchmark for name, _ in origins]) & found
            values = from_numbers(hits)
            self.context.drop(task, from_bools(own), reason=benchmark, values=values, threshold=f"< {self.min_hits}")
        return task.filter(from_bools(~found))

    def _marked(self, task: DocumentBatch, origins: list[tuple[str, str]]) -> DocumentBatch:
        """Add which benchmark each document is contaminated by, and the words it shares with it."""
        texts = task.column(self.text_field).to_pylist()
        words = [
            shared_words(str(text), theirs, self.ngram_words) or theirs
            for text, (_, theirs) in zip(texts, origins, strict=True)
        ]
        named = task.with_column(BENCHMARK_FIELD, from_texts([name for name, _ in origins]))
        return named.with_column(NGRAM_FIELD, from_texts(words))
