"""`TokenSplitterStage`: long texts as several rows, cut between paragraphs, each with few enough tokens for a model."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_numbers
from gristmill.models.tokenizer import Tokenizer, open_tokenizer
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.models.files import check_positive
from gristmill.stages.text.modules.splitter import without_values
from gristmill.stages.text.with_tokenizer import WithTokenizer
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_texts

CALL_CHARS = 1 << 20  # of paragraphs that go to the tokenizer together


class Chunk(NamedTuple):
    """Paragraphs of one document that follow one another."""

    text: str | None
    num_tokens: int


@dataclass
class TokenSplitterStage(WithTokenizer, ProcessingStage[DocumentBatch, DocumentBatch]):
    """Cut a text at `separator` into rows of at most `max_length_tokens` tokens each.

    The rows of a document are numbered from 0 in `chunk_id_field`, and `n_tokens_field` says how many tokens each has
    by the tokenizer of `model_name`: a directory, "package:NAME" or a hub id. Joined, the rows are the text without its
    blank paragraphs. A paragraph is never divided: one that is longer is a row by itself. A text that is missing or
    blank is one row with 0 tokens. The other columns are repeated; `ChunkMergeStage` puts rows together again.
    """

    adds_only_declared_columns: ClassVar[bool] = True
    tokenizer_parameter: ClassVar[str] = "model_name"

    model_name: str
    max_length_tokens: int = 8000
    separator: str = "\n\n"
    text_field: str = "text"
    chunk_id_field: str = "chunk_id"
    n_tokens_field: str = "n_tokens"
    _: KW_ONLY
    cache_dir: str | None = None
    offline: bool | None = None
    name: str = "token_splitter"

    def __post_init__(self) -> None:
        check_positive(self, ("max_length_tokens",))
        if not self.separator:
            raise ConfigError(f"{self.name}: expected a separator of at least one character; got {self.separator!r}")
        self._revision: str | None = None
        self._tokenizer: Tokenizer | None = None

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field, self.chunk_id_field, self.n_tokens_field]

    # The tokenizer

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._tokenizer = open_tokenizer(self.source(), threads=max(1, int(self.resources.cpus)))

    def teardown(self) -> None:
        self._tokenizer = None

    # Splitting

    def process(self, task: DocumentBatch) -> DocumentBatch:
        texts = task.column(self.text_field).to_pylist()
        chunks = [list(self._chunks(text, counts)) for text, counts in zip(texts, self._counted(texts), strict=True)]
        counts = np.fromiter(map(len, chunks), np.int64, len(chunks))
        flat = [chunk for of_one in chunks for chunk in of_one]
        numbers = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        if len(flat) > len(texts):
            rows = from_numbers(np.repeat(np.arange(len(texts)), counts))
            task = without_values(task, self.text_field).take(rows)
        if [chunk.text for chunk in flat] != texts:
            task = task.with_column(self.text_field, from_texts([chunk.text for chunk in flat]))
        tokens = from_numbers(np.array([chunk.num_tokens for chunk in flat], np.int64))
        return task.with_column(self.chunk_id_field, from_numbers(numbers)).with_column(self.n_tokens_field, tokens)

    def _paragraphs(self, text: str | None) -> list[str]:
        """The paragraphs that are not blank, each with the separator after it."""
        pieces = (text or "").split(self.separator)
        ends = [self.separator] * (len(pieces) - 1) + [""]
        return [piece + end for piece, end in zip(pieces, ends, strict=True) if piece.strip()]

    def _counted(self, texts: list[str | None]) -> Iterator[list[int]]:
        """The tokens of each paragraph of each text. One call of the tokenizer takes many, of several documents too."""
        tokenizer = self._tokenizer = self._tokenizer or open_tokenizer(self.source())
        waiting: list[str] = []
        sizes: list[int] = []  # paragraphs of the texts that wait
        chars = 0
        for text in texts:
            own = self._paragraphs(text)
            waiting += own
            sizes.append(len(own))
            chars += sum(map(len, own))
            if chars > CALL_CHARS:
                yield from _by_text(tokenizer, waiting, sizes)
                waiting, sizes, chars = [], [], 0
        yield from _by_text(tokenizer, waiting, sizes)

    def _chunks(self, text: str | None, counts: list[int]) -> Iterator[Chunk]:
        taken: list[str] = []
        tokens = 0
        for paragraph, count in zip(self._paragraphs(text), counts, strict=True):
            if tokens and tokens + count > self.max_length_tokens:
                yield Chunk("".join(taken), tokens)
                taken, tokens = [], 0
            taken.append(paragraph)
            tokens += count
        yield Chunk("".join(taken), tokens) if taken else Chunk(text, 0)


def _by_text(tokenizer: Tokenizer, paragraphs: list[str], sizes: list[int]) -> Iterator[list[int]]:
    lengths = np.diff(tokenizer.encode(paragraphs, special=False).offsets).tolist() if paragraphs else []
    start = 0
    for size in sizes:
        yield lengths[start : start + size]
        start += size
