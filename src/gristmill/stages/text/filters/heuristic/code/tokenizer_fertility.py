"""`TokenizerFertilityFilter`: text that a tokenizer knows no words for."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Protocol

import pyarrow as pa

from gristmill.errors import ConfigError, require
from gristmill.stages.text.judging.document_filter import Bounds, DocumentFilter

EXTRA = "code"


class _Processor(Protocol):
    def encode_as_ids(self, text: str, /) -> list[int]: ...


@dataclass
class TokenizerFertilityFilter(DocumentFilter[float]):
    """Drop texts with too few characters for each token of a SentencePiece model; a text without tokens scores −1."""

    measure: ClassVar[str] = "characters per token"
    score_type: ClassVar[pa.DataType] = pa.float64()

    path_to_tokenizer: str | None = None
    min_char_to_token_ratio: float = 2.5

    def check_ready(self) -> None:
        if self.path_to_tokenizer is None or not Path(self.path_to_tokenizer).is_file():
            raise ConfigError(
                "TokenizerFertilityFilter: expected path_to_tokenizer to be a SentencePiece model file; "
                f"got {self.path_to_tokenizer!r}"
            )
        require("sentencepiece", extra=EXTRA)

    def load_tokenizer(self) -> None:
        _load(str(self.path_to_tokenizer))

    def score_document(self, text: str) -> float:
        num_tokens = len(_load(str(self.path_to_tokenizer)).encode_as_ids(text))
        return len(text) / num_tokens if num_tokens else -1.0

    def bounds(self) -> Bounds:
        return self.min_char_to_token_ratio, None


@cache  # not on the filter: what was loaded in one process must not travel to another
def _load(path: str) -> _Processor:
    processor: _Processor = require("sentencepiece", extra=EXTRA).SentencePieceProcessor(model_file=path)
    return processor
