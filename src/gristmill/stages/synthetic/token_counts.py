"""How many tokens a text has: by a tokenizer's own count, or by an estimate that needs nothing.

Limits on prompts and answers are in tokens of the model that is asked. Users who have its tokenizer name it; those who
ask a server often do not have it, nor want a download just for a limit that is round anyway. The estimate is made of
what tokenizers of 30,000 to 130,000 entries have in common: a short word is one token, a long one several, a
punctuation mark is one, and scripts that few entries cover cost more. docs/adr/0026-llm-stages.md says how far off it
is, by script.
"""

import re
from collections.abc import Callable, Sized
from functools import cache
from pathlib import Path
from typing import Protocol

from gristmill.errors import ConfigError
from gristmill.models.runtime import ModelSource
from gristmill.stages.text.models.files import download, is_from_hub, tokenizer_ready

CountTokens = Callable[[str], int]

# Alternatives, ordered by how often they match. A run of letters beyond ASCII is measured in characters, because their
# bytes (two or three each) are what such tokenizers fall back to.
_PIECE = re.compile(
    r"(?P<word>[A-Za-z]+)"
    r"|(?P<number>[0-9]+)"
    r"|(?P<ideographs>[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+)"
    r"|(?P<letters>[^\W\d_]+)"
    r"|(?P<breaks>[\r\n]+)"
    r"|(?P<mark>[^\w\s]|[_\d])"
)
_WORD_CHARS = 6  # letters of an ASCII word that one token covers
_LETTER_CHARS = 3  # letters of other alphabets in one token
_NUMBER_CHARS = 3  # digits in one token


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a model's tokenizer makes of a text.

    >>> estimate_tokens("The mill grinds, slowly.")
    6
    """
    total = 0
    for piece in _PIECE.finditer(text):
        kind, size = piece.lastgroup, piece.end() - piece.start()
        if kind == "word":
            total += -(-size // _WORD_CHARS)
        elif kind == "number":
            total += -(-size // _NUMBER_CHARS)
        elif kind == "letters":
            total += -(-size // _LETTER_CHARS)
        elif kind == "ideographs":
            total += size
        else:
            total += 1  # a mark; or line breaks, however many
    return total


class Encodes(Protocol):
    """What tokenizers of many libraries have in common."""

    def encode(self, text: str, /) -> Sized:
        """Return the tokens."""
        ...


def token_counter(tokenizer: str | Encodes | None, *, who: str) -> CountTokens:
    """Return what counts tokens: as the tokenizer of a model does, or by the estimate if none is named.

    `tokenizer` is a directory, `package:NAME` or a hub id, or an object with a method `encode`. To be called in the
    process that counts: what is loaded is kept there, and is not sent anywhere.
    """
    if tokenizer is None:
        return estimate_tokens
    if isinstance(tokenizer, str):
        return _opened(tokenizer, who)
    encode = tokenizer.encode
    return lambda text: len(encode(text))


@cache
def _opened(tokenizer: str, who: str) -> CountTokens:
    from gristmill.models.tokenizer import open_tokenizer

    opened = open_tokenizer(_source(tokenizer, who))
    return lambda text: int(opened.encode([text], special=False).offsets[-1])


def tokenizer_name(tokenizer: str | Encodes | None) -> str | None:
    """Return what stands for a tokenizer in the fingerprint of a plan."""
    if tokenizer is None or isinstance(tokenizer, str):
        return tokenizer
    return f"{type(tokenizer).__module__}.{type(tokenizer).__qualname__}"


def check_tokenizer(tokenizer: str | Encodes | None, *, who: str) -> bool:
    """Raise if a tokenizer can neither be found nor downloaded; return whether it is on this machine."""
    if isinstance(tokenizer, str):
        return tokenizer_ready(_source(tokenizer, who)).directory is not None
    if tokenizer is not None and not callable(getattr(tokenizer, "encode", None)):
        raise ConfigError(f"{who}: expected tokenizer to be a name, or to have a method encode; got {tokenizer!r:.80}")
    return True


def is_downloaded(tokenizer: str | Encodes | None) -> bool:
    """Whether a tokenizer comes from the hub, so that a machine may have to fetch it."""
    return isinstance(tokenizer, str) and is_from_hub(_source(tokenizer, ""))


def fetch_tokenizer(tokenizer: str | Encodes | None, *, who: str) -> None:
    """Download a tokenizer that is not on this machine: for `setup_on_node`, and nowhere else."""
    if isinstance(tokenizer, str):
        download(_source(tokenizer, who))


def absolute_tokenizer(tokenizer: str | Encodes | None) -> str | Encodes | None:
    """Return the same tokenizer, whatever the working directory of a worker will be."""
    if isinstance(tokenizer, str) and Path(tokenizer).is_dir():
        return str(Path(tokenizer).absolute())
    return tokenizer


def _source(tokenizer: str, who: str) -> ModelSource:
    return ModelSource(tokenizer, files="tokenizer", who=who)
