"""`TokenCountFilter`: how long a text is for a language model."""

from collections.abc import Sized
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import ClassVar, Protocol, cast

import pyarrow as pa

from gristmill.errors import ConfigError, require
from gristmill.stages.text.judging.document_filter import Bounds, DocumentFilter

EXTRA = "models"
_FILE = "tokenizer.json"


class Tokenizer(Protocol):
    """What tokenizers of many libraries have in common."""

    def encode(self, text: str, /) -> Sized:
        """Return the tokens."""
        ...


@dataclass
class TokenCountFilter(DocumentFilter[int]):
    """Drop texts with too few or too many tokens.

    Give a `tokenizer` with a method `encode`, or `hf_model_name`: the name of a model on the Hugging Face hub, fetched
    once per machine, or the path of a `tokenizer.json` or of a directory that holds one.
    """

    measure: ClassVar[str] = "tokens"
    amount: ClassVar[str | None] = "tokens"
    score_type: ClassVar[pa.DataType] = pa.int64()

    tokenizer: Tokenizer | None = None
    hf_model_name: str | None = None
    hf_token: str | None = field(default=None, repr=False)
    min_tokens: int = 0
    max_tokens: float = float("inf")

    def __post_init__(self) -> None:
        if (self.tokenizer is None) == (self.hf_model_name is None):
            raise ConfigError(
                "TokenCountFilter: expected either tokenizer or hf_model_name; "
                f"got {self.tokenizer!r} and {self.hf_model_name!r}"
            )
        if self.hf_model_name is not None:
            require("tokenizers", extra=EXTRA)

    def model_check_or_download(self) -> None:
        self.load_tokenizer()

    def load_tokenizer(self) -> None:
        if self.hf_model_name is not None:
            _load(self.hf_model_name, self.hf_token)

    def score_document(self, text: str) -> int:
        tokenizer = self.tokenizer
        if tokenizer is None:
            tokenizer = _load(str(self.hf_model_name), self.hf_token)
        return len(tokenizer.encode(text))

    def bounds(self) -> Bounds:
        return self.min_tokens, None if self.max_tokens == float("inf") else self.max_tokens


@cache  # not on the filter: what was loaded in one process must not travel to another
def _load(name: str, token: str | None) -> Tokenizer:
    library = require("tokenizers", extra=EXTRA).Tokenizer
    path = Path(name) / _FILE if Path(name).is_dir() else Path(name)
    loaded = library.from_file(str(path)) if path.is_file() else library.from_pretrained(name, token=token)
    return cast("Tokenizer", loaded)
