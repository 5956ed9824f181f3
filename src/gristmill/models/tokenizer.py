"""Texts to token ids. The one place that imports tokenizers.

    tokenizer = open_tokenizer(source)
    tokens = tokenizer.encode(["some text", ...], max_length=512)
    tokens.ids, tokens.offsets, tokens.is_truncated      # flat, see kernels/token_batches.py

A text is cut to `max_length` tokens with its special tokens kept. What a model cannot be given (lone surrogates, NUL)
is replaced in the copy the tokenizer sees.
"""

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError, require
from gristmill.models.known_configs import Config, read_json
from gristmill.models.runtime import ModelSource, locate_tokenizer

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNSUITABLE = {0: REPLACEMENT} | dict.fromkeys(range(0xD800, 0xE000), REPLACEMENT)


class Tokens(NamedTuple):
    """Ids of several texts, end to end: text d owns ids[offsets[d]:offsets[d + 1]]."""

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    is_truncated: NDArray[np.bool_]


class Tokenizer:
    """A tokenizer.json with the settings beside it."""

    def __init__(self, backend: Any, settings: Config) -> None:
        self._backend = backend
        self._backend.no_padding()
        self._truncated_to: int | None = None
        self._backend.no_truncation()
        self._side = "left" if settings.get("truncation_side") == "left" else "right"
        self.keeps_end = self._side == "left"  # of a text that is too long
        self.vocabulary_size = int(backend.get_vocab_size(with_added_tokens=True))
        self.largest_id = max(backend.get_vocab(with_added_tokens=True).values(), default=0)
        self.num_special = int(backend.num_special_tokens_to_add(is_pair=False))
        self.unk_id = self._id_of(settings.get("unk_token"))
        self.eos_id = self._id_of(settings.get("eos_token"))
        self.pad_id = self._id_of(settings.get("pad_token"))

    def encode(self, texts: Sequence[str], *, max_length: int | None = None, special: bool = True) -> Tokens:
        """Return the ids of every text; cut to `max_length`, special tokens included."""
        self._truncate_to(max_length)
        try:
            encodings = self._backend.encode_batch_fast(texts, add_special_tokens=special)
        except (TypeError, UnicodeEncodeError):  # a lone surrogate: not valid Unicode
            texts = [text.translate(_UNSUITABLE) for text in texts]
            encodings = self._backend.encode_batch_fast(texts, add_special_tokens=special)
        rows = [encoding.ids for encoding in encodings]
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(offsets[-1]))
        truncated = np.fromiter((bool(encoding.overflowing) for encoding in encodings), dtype=np.bool_, count=len(rows))
        return Tokens(ids, offsets, truncated)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids, without special tokens."""
        return str(self._backend.decode([int(each) for each in ids], skip_special_tokens=True))

    def id_of(self, token: str) -> int | None:
        """Return the id of a token, or None if the vocabulary does not have it."""
        return self._id_of(token)

    def _id_of(self, token: object) -> int | None:
        text = token.get("content") if isinstance(token, dict) else token
        found = self._backend.token_to_id(text) if isinstance(text, str) else None
        return None if found is None else int(found)

    def _truncate_to(self, max_length: int | None) -> None:
        if max_length == self._truncated_to:
            return
        if max_length is None:
            self._backend.no_truncation()
        else:
            if max_length <= self.num_special:
                raise ConfigError(
                    f"tokenizer: expected max_length > {self.num_special}, its special tokens; got {max_length}"
                )
            self._backend.enable_truncation(max_length, direction=self._side)
        self._truncated_to = max_length


def open_tokenizer(source: ModelSource, *, threads: int = 1) -> Tokenizer:
    """Load the tokenizer of a model whose files are on this machine."""
    directory = locate_tokenizer(source)
    file = directory / "tokenizer.json"
    if not file.is_file():
        raise ConfigError(f"{source.who}: expected a tokenizer.json in {directory}; {_instead(directory)}")
    return read_tokenizer(file, who=source.who, threads=threads)


def read_tokenizer(file: Path, *, who: str, threads: int = 1) -> Tokenizer:
    """Load the tokenizer of one file, with the settings beside it if there are any."""
    tokenizers = require("tokenizers", extra="models")
    if threads == 1:  # the library would take every core, and warn of a fork after that
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        backend = tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception for a file it cannot read
        if type(error) is not Exception:
            raise
        raise ConfigError(f"{who}: expected a tokenizer of the tokenizers library in {file}; got: {error}") from None
    return Tokenizer(backend, _settings(file.parent))


def _settings(directory: Path) -> Config:
    file = directory / "tokenizer_config.json"
    return read_json(file) if file.is_file() else {}


def _instead(directory: Path) -> str:
    other = [
        name
        for name in ("spm.model", "sentencepiece.bpe.model", "vocab.txt", "vocab.json")
        if (directory / name).exists()
    ]
    if not other:
        return "found no tokenizer"
    return (
        f"found {', '.join(other)}, an older form. transformers writes the new one: "
        f"AutoTokenizer.from_pretrained({str(directory)!r}).save_pretrained({str(directory)!r})"
    )
