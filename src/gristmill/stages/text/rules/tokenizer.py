"""`Tokenizer`: cuts texts into the tokens of spaCy's blank English pipeline, and remembers what it has cut.

What is remembered makes it faster and changes nothing: each worker has a memory of its own, which is thrown away when
it is full. Rules that count tokens live elsewhere.
"""

import unicodedata
from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens import lexicon_layout as lay
from gristmill.stages.compiled_kernel import CompiledKernel, source_digest
from gristmill.stages.text.statistics.text_column import TextColumn
from gristmill.storage.byte_cache import cached_bytes

_LEXICON_BITS = 19  # 46 MB once it is full; a batch of 10 MB has 150,000 different pieces, and half of 2**19 fit
_FULL = 0.6  # beyond that, a batch may not find room
_COUNTS = 5  # as in kernels/tokens/tokenize.py, which may only be imported to be compiled
_SCRATCH_PER_BYTE = 6
_PIECE = 5  # numbers for each piece
_LARGE_BYTES = 32 << 20  # room for a text of more than a megabyte is given back
_tokenize = CompiledKernel("tokens.tokenize", "tokenize")


@dataclass(frozen=True)
class Tokens:
    """The tokens of texts, end to end; text d has tokens offsets[d] to offsets[d + 1]."""

    texts: TextColumn
    offsets: NDArray[np.int64]  # [D + 1]
    ids: NDArray[np.int32]  # [T] numbers in the lexicon
    places: NDArray[np.int32]  # [T] where a token starts in its text, in bytes
    lexicon: lay.Lexicon
    counts: NDArray[np.int64]  # [D, 5]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def num_tokens(self) -> NDArray[np.int64]:
        """int64[D], as the next ones."""
        return self.counts[:, 0]

    @property
    def num_words(self) -> NDArray[np.int64]:
        """Tokens that are not symbols alone."""
        return self.counts[:, 1]

    @property
    def word_chars(self) -> NDArray[np.int64]:
        """Characters of words."""
        return self.counts[:, 2]

    @property
    def with_letter(self) -> NDArray[np.int64]:
        """Tokens with a letter in them."""
        return self.counts[:, 3]

    @property
    def most_chars(self) -> NDArray[np.int64]:
        """Characters of all occurrences of one token, and one more for each: those of the token that has most."""
        return self.counts[:, 4]


class Tokenizer:
    """Cuts texts, and is faster the more it has seen of their kind."""

    def __init__(self) -> None:
        self._lexicon: lay.Lexicon | None = None
        self._rooms: dict[str, NDArray[np.signedinteger]] = {}

    def cut(self, texts: TextColumn, *, with_space: bool = False) -> Tokens:
        """Return the tokens; white space between them is a token only `with_space`."""
        bits = _LEXICON_BITS
        lexicon = self._lexicon
        if lexicon is None or lay.fullness(lexicon) > _FULL:
            lexicon = lay.new_lexicon(bits)
        while True:
            tokens = self._cut(texts, lexicon, with_space=with_space)
            if tokens is not None:
                self._lexicon = lexicon
                return tokens
            # All of it again: tokens already numbered by the full lexicon would mean nothing in another one.
            bits += 2
            lexicon = lay.new_lexicon(bits)

    def _cut(self, texts: TextColumn, lexicon: lay.Lexicon, *, with_space: bool) -> Tokens | None:
        """Return the tokens; None if the lexicon is too small for them."""
        sizes = texts.stops - texts.starts
        longest, total = int(sizes.max(initial=0)), int(sizes.sum())
        num_pieces = longest // 2 + 8
        ids, places = self._room("ids", total + 1, np.int32), self._room("places", total + 1, np.int32)
        offsets, counts = np.zeros(len(texts) + 1, np.int64), np.zeros((len(texts), _COUNTS), np.int64)
        done = _tokenize(
            *(texts.data, texts.starts, texts.stops, len(texts), int(with_space), *_tables(), lexicon),
            *(self._room("pieces", _PIECE * num_pieces, np.int64), num_pieces),
            *(self._room("scratch", _SCRATCH_PER_BYTE * (longest + 1), np.int32), ids, places, offsets, counts),
        )
        if done < len(texts):
            return None
        end = int(offsets[-1])
        return Tokens(texts, offsets, ids[:end].copy(), places[:end].copy(), lexicon, counts)

    def _room(self, name: str, size: int, kind: type[np.signedinteger]) -> NDArray[np.signedinteger]:
        """Return an array to write to; memory asked for anew costs more than what is written there."""
        found = self._rooms.get(name)
        if found is None or len(found) < size:
            found = np.empty(size, kind)
            if found.nbytes <= _LARGE_BYTES:
                self._rooms[name] = found
        return found


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
