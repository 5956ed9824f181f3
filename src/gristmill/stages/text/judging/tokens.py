"""English tokens of a whole column, and what rule sets count on them.

`EnglishTokenizer` cuts texts into the tokens of spaCy's blank English pipeline, and remembers what it has cut. What is
remembered makes it faster and changes nothing: each worker has a memory of its own, which forgets what it has not
seen for long. The definitions of what is counted are those of the rule sets, which have them for one text.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens import layout
from gristmill.kernels.tokens import lexicon_layout as lay
from gristmill.kernels.tokens.token_hash import hash_bytes, hash_table
from gristmill.stages.compiled_kernel import CompiledKernel, source_digest
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.storage.byte_cache import cached_bytes

Number = TypeVar("Number", bound=np.generic)
Counts = NDArray[np.int64]
NGramLimits = Sequence[tuple[int, float | None]]

_LEXICON_BITS = 17  # 8 MB
_LARGE_BYTES = 64 << 20  # room for texts of more than some megabytes is given back
_tokenize = CompiledKernel("tokens.tokenize", "tokenize")
_top_ngrams = CompiledKernel("tokens.ngrams", "top_ngrams")
_duplicate_ngrams = CompiledKernel("tokens.repeats", "duplicate_ngrams")
_count_sentences = CompiledKernel("tokens.token_counts", "count_sentences")
_count_listed = CompiledKernel("tokens.token_counts", "count_listed")


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
        """int64[D], like the next ones; white space does not count."""
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


class EnglishTokenizer:
    """Cuts texts, and is faster the more it has seen of their kind."""

    def __init__(self) -> None:
        self._rooms: dict[str, NDArray[np.generic]] = {}

    def cut(self, texts: TextColumn) -> Tokens:
        """Return the tokens of every text."""
        longest, total, tokens = texts.longest, texts.num_bytes, texts.num_bytes + len(texts)
        solid = np.empty(total + layout.ROOM_BEHIND, np.uint8)
        places, gaps = np.empty(tokens, np.int32), np.empty(tokens, np.uint8)  # of which only a fifth is ever touched
        firsts, offsets = np.zeros(len(texts) + 1, np.int64), np.zeros(len(texts) + 1, np.int64)
        counts = np.zeros((len(texts), layout.COUNTS), np.int64)
        _tokenize(
            *(texts.data, texts.starts, texts.stops, len(texts)),
            *(*_tables(), self._lexicon(), (1 << _LEXICON_BITS) - 1, self._room("notes", layout.NOTES, np.int64)),
            self._room("spans", layout.SPANS_PER_BYTE * (longest + layout.ROOM_BEHIND), np.int32),
            self._room("scratch", layout.SCRATCH_PER_BYTE * (longest + layout.ROOM_BEHIND), np.int32),
            *(solid, firsts, places, gaps, offsets, counts),
        )
        end = int(offsets[-1])
        return Tokens(solid, firsts, places[:end], gaps[:end], offsets, counts)

    def _lexicon(self) -> lay.Lexicon:
        if "lexicon" not in self._rooms:
            self._rooms["lexicon"] = lay.new_lexicon(_LEXICON_BITS)
        return cast("lay.Lexicon", self._rooms["lexicon"])

    def _room(self, name: str, size: int, kind: type[Number]) -> NDArray[Number]:
        """Return an array to write to; new memory costs more than what is written there."""
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


def top_ngram_chars(tokens: Tokens, limits: NGramLimits, chars: Counts, wanted: NDArray[np.bool_]) -> Counts:
    """Return int64[D, sizes]: count times length of the most frequent n-gram, joined with blanks; sizes rise.

    Of several most frequent n-grams the one seen first counts, as in `Counter.most_common`. 0 without n-grams, where
    not wanted, and where no n-gram can have more than its limit, a share of `chars`.
    """
    return _count_ngrams(_top_ngrams, tokens, limits, chars, wanted, np.empty(layout.BUCKETS, np.int32))


def duplicate_ngram_chars(tokens: Tokens, limits: NGramLimits, chars: Counts, wanted: NDArray[np.bool_]) -> Counts:
    """Return int64[D, sizes]: characters in n-grams that occurred before; sizes rise.

    From left to right: an n-gram that was seen is counted and jumped over, else the scan moves by one token. N-grams
    are compared as their tokens written together without blanks. 0 where not wanted, where they cannot have more than
    their limit, and behind one that has, if the limits are given with sizes that rise.
    """
    given = [n for n, _ in limits]
    return _count_ngrams(_duplicate_ngrams, tokens, limits, chars, wanted, int(given == sorted(set(given))))


def _count_ngrams(
    kernel: CompiledKernel,
    tokens: Tokens,
    limits: NGramLimits,
    chars: Counts,
    wanted: NDArray[np.bool_],
    option: NDArray[np.int32] | int,
) -> Counts:
    lowest = _lowest(limits)
    counts = np.zeros((len(tokens), len(lowest)), np.int64)
    if wanted.any() and lowest:
        room = int(tokens.num_tokens[wanted].max()) + 8
        kernel(
            *(tokens.solid, tokens.firsts, tokens.places, tokens.offsets, len(tokens), wanted.view(np.uint8), chars),
            *(np.array(list(lowest), np.int64), np.array(list(lowest.values()), np.float64), len(lowest)),
            *(option, np.empty(layout.TOKEN_SCRATCH * room, np.int64), room, counts),
        )
    return counts


def _lowest(limits: NGramLimits) -> dict[int, float]:
    """The lowest limit for each size, in rising order of sizes; 0 where there is none."""
    sizes = sorted({n for n, _ in limits})
    return {n: min((limit for size, limit in limits if size == n and limit), default=0.0) for n in sizes}


def count_sentences(tokens: Tokens) -> Counts:
    """Return int64[D]. A text without tokens counts as one sentence."""
    counts = np.zeros(len(tokens), np.int64)
    where = (tokens.solid, tokens.firsts, tokens.places, tokens.gaps, tokens.offsets, len(tokens))
    _count_sentences(*where, character_classes(), counts)
    return counts


def count_different(tokens: Tokens, words: Sequence[str]) -> Counts:
    """Return int64[D]: how many of the words occur as tokens."""
    counts = np.zeros(len(tokens), np.int64)
    listed = tuple(sorted({word for word in words if word}))
    if listed:
        where = (tokens.solid, tokens.firsts, tokens.places, tokens.offsets, len(tokens))
        _count_listed(*where, *_word_tables(listed), len(listed), np.zeros(len(listed), np.int64), counts)
    return counts


@lru_cache(maxsize=16)
def _word_tables(words: tuple[str, ...]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Lengths by first byte, and the words by their hash, as kernels/tokens/token_counts.py has it."""
    lengths = [0] * 256
    for word in words:
        lengths[word.encode()[0]] |= 1 << min(len(word.encode()), layout.LONGEST_LENGTH)
    keys, values = hash_table({hash_bytes(word.encode()): number for number, word in enumerate(words)})
    head = np.array([len(keys) - 1, layout.TABLE_HEAD, layout.TABLE_HEAD + len(keys)], np.uint64)
    return np.array(lengths, np.uint64), np.concatenate([head, keys, values])
