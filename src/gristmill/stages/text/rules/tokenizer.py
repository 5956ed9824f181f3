"""`Tokenizer`: cuts texts into the tokens of spaCy's blank English pipeline, and remembers what it has cut.

What is remembered makes it faster and changes nothing: each worker has a memory of its own, which forgets what was not
seen for long. Rules that count tokens live elsewhere.
"""

import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens import lexicon_layout as lay
from gristmill.kernels.tokens.layout import COUNTS, NOTES, ROOM_BEHIND, SCRATCH_PER_BYTE, SPANS_PER_BYTE
from gristmill.stages.compiled_kernel import CompiledKernel, source_digest
from gristmill.stages.text.statistics.text_column import TextColumn
from gristmill.storage.byte_cache import cached_bytes

Number = TypeVar("Number", bound=np.generic)

_LEXICON_BITS = 17  # 8 MB
_LARGE_BYTES = 64 << 20  # room for texts of more than some megabytes is given back
_tokenize = CompiledKernel("tokens.tokenize", "tokenize")


@dataclass(frozen=True)
class Tokens:
    """The tokens of texts: token k of text d is `solid[a:b]`, with a and b what firsts[d] and these two add up to:

    places[offsets[d] + k] and places[offsets[d] + k + 1].
    """

    solid: NDArray[np.uint8]  # the texts without white space
    firsts: NDArray[np.int64]  # [D + 1] where each solid text begins
    places: NDArray[np.int32]  # [T + D] where tokens start in it, and where the last one ends
    gaps: NDArray[np.uint8]  # [T + D] what stands before: 0 nothing, 1 a blank, 2 white space that is a token itself
    offsets: NDArray[np.int64]  # [D + 1]
    counts: NDArray[np.int64]  # [D, 3]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_tokens(self) -> NDArray[np.int64]:
        """int64[D], as the next ones; white space does not count."""
        return np.diff(self.offsets) - 1

    @property
    def num_words(self) -> NDArray[np.int64]:
        """Tokens that are not symbols alone."""
        return self.counts[:, 0]

    @property
    def word_chars(self) -> NDArray[np.int64]:
        """Characters of words."""
        return self.counts[:, 1]

    @property
    def with_letter(self) -> NDArray[np.int64]:
        """Tokens with a letter in them."""
        return self.counts[:, 2]


class Tokenizer:
    """Cuts texts, and is faster the more it has seen of their kind."""

    def __init__(self) -> None:
        self._rooms: dict[str, NDArray[np.generic]] = {}

    def cut(self, texts: TextColumn) -> Tokens:
        """Return the tokens of every text."""
        longest, total, tokens = texts.longest, texts.num_bytes, texts.num_bytes + len(texts)
        solid = np.empty(total + ROOM_BEHIND, np.uint8)
        places, gaps = np.empty(tokens, np.int32), np.empty(tokens, np.uint8)  # of which a fifth is ever touched
        firsts, offsets = np.zeros(len(texts) + 1, np.int64), np.zeros(len(texts) + 1, np.int64)
        counts = np.zeros((len(texts), COUNTS), np.int64)
        _tokenize(
            *(texts.data, texts.starts, texts.stops, len(texts)),
            *(*_tables(), self._lexicon(), (1 << _LEXICON_BITS) - 1, self._room("notes", NOTES, np.int64)),
            self._room("spans", SPANS_PER_BYTE * (longest + ROOM_BEHIND), np.int32),
            self._room("scratch", SCRATCH_PER_BYTE * (longest + ROOM_BEHIND), np.int32),
            *(solid, firsts, places, gaps, offsets, counts),
        )
        end = int(offsets[-1])
        return Tokens(solid, firsts, places[:end], gaps[:end], offsets, counts)

    def _lexicon(self) -> lay.Lexicon:
        if "lexicon" not in self._rooms:
            self._rooms["lexicon"] = lay.new_lexicon(_LEXICON_BITS)
        return cast("lay.Lexicon", self._rooms["lexicon"])

    def _room(self, name: str, size: int, kind: type[Number]) -> NDArray[Number]:
        """Return an array to write to; memory asked for anew costs more than what is written there."""
        found = self._rooms.get(name)
        if found is None or len(found) < size:
            found = np.empty(size, kind)
            if found.nbytes <= _LARGE_BYTES:
                self._rooms[name] = found
        return cast("NDArray[Number]", found)


def character_classes() -> NDArray[np.uint32]:
    """The classes of characters, see kernels/tokens/code_points.py."""
    return _tables()[0]


@cache
def _tables() -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """What the kernel looks characters and exceptions up in; half a second to make, so they are kept."""

    def make() -> bytes:
        from gristmill.kernels.tokens.english_tables import english_tables

        return msgspec.msgpack.encode([table.tobytes() for table in english_tables()])

    key = f"english_tables\n{unicodedata.unidata_version}\n{source_digest('gristmill.kernels.tokens')}"
    classes, words = msgspec.msgpack.decode(cached_bytes(key, make), type=tuple[bytes, bytes])
    return np.frombuffer(classes, np.uint32), np.frombuffer(words, np.uint64)
