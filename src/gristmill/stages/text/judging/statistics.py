"""What can be counted in a text, and counting it in many texts at once. All counts are whole numbers.

A `Statistic` names something that is counted. Statistics are counted by *passes*, each of which reads the text once and
counts several; asking for one of them costs as much as asking for all. `plan_passes` says which pass counts
what, given everything that will be asked for, so that filters and rule sets next to each other count nothing twice.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import is_null
from gristmill.kernels.text import layout
from gristmill.kernels.text.layout import BLOCK
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.judging import tables
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import JsonLines, loads
from gristmill.tasks.text_columns import from_texts

# `TextColumn`: a column of texts as the bytes and ranges that kernels work on, and the ways to get one.
#
# The texts of a batch that was read from JSON lines are taken straight from the lines until they are asked for as a
# column: counting needs no Arrow column, and that of a batch that loses rows would be copied again.

PIECE_BYTES = 1 << 20
ROOM_BEFORE = BLOCK  # kernels load this many bytes that end where a text ends

_OFFSETS = {pa.string(): np.int32, pa.large_string(): np.int64}
_NO_BYTES = np.zeros(1, np.uint8)
_ROOM_BEHIND = BLOCK  # what is copied at a time
_unescape_strings = CompiledKernel("text.json_strings", "unescape_strings")


@dataclass(frozen=True)
class TextColumn:
    """Document d is `data[starts[d]:stops[d]]`, UTF-8; a missing one is empty there."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    nulls: NDArray[np.bool_] | None = None  # which are missing; None if none is

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> "TextColumn | None":
        """Return the texts of a column, sharing its memory where it has one chunk; None if it holds no texts."""
        if pa.types.is_null(column.type):
            nothing = np.zeros(len(column), np.int64)
            return cls(_NO_BYTES, nothing, nothing, np.ones(len(column), np.bool_))
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())
        if column.type not in _OFFSETS:
            return None
        if column.num_chunks != 1:
            column = pa.chunked_array([column.cast(pa.large_string()).combine_chunks()])
        return cls._of_array(column.chunk(0), is_null(column))

    @classmethod
    def _of_array(cls, array: pa.Array, null: NDArray[np.bool_]) -> "TextColumn":
        _, offsets, data = array.buffers()
        if not len(array) or offsets is None:
            return cls(_NO_BYTES, np.zeros(0, np.int64), np.zeros(0, np.int64))
        width = np.dtype(_OFFSETS[array.type])
        bounds = np.frombuffer(offsets, width, len(array) + 1, array.offset * width.itemsize).astype(np.int64)
        starts, stops, nulls = bounds[:-1].copy(), bounds[1:].copy(), null if null.any() else None
        if nulls is not None:  # what an Arrow array has at the place of a null is not specified, and may be bytes
            stops[nulls] = starts[nulls]
        given = np.frombuffer(data, np.uint8) if data is not None and data.size else _NO_BYTES
        first = stops[stops > starts][:1]
        if len(first) and first[0] < ROOM_BEFORE:
            given = np.concatenate([np.zeros(ROOM_BEFORE, np.uint8), given])
            starts, stops = starts + ROOM_BEFORE, stops + ROOM_BEFORE
        return cls(given, starts, stops, nulls)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def is_null(self) -> NDArray[np.bool_]:
        """bool[D]: whether a text is missing."""
        return np.zeros(len(self), np.bool_) if self.nulls is None else self.nulls

    @property
    def num_bytes(self) -> int:
        """The bytes of all documents."""
        return int((self.stops - self.starts).sum())

    @property
    def longest(self) -> int:
        """The bytes of the longest document."""
        return int((self.stops - self.starts).max(initial=0))

    def take(self, rows: NDArray[np.int64]) -> "TextColumn":
        """Return some of the documents, sharing their memory."""
        nulls = None if self.nulls is None else self.nulls[rows]
        return TextColumn(self.data, self.starts[rows], self.stops[rows], nulls)


def texts_of_batch(batch: DocumentBatch, name: str) -> TextColumn:
    """Return the texts. What is not a string is taken as its line has it or, without lines, as Arrow prints it."""
    lines = batch.lines
    if lines is not None and name not in batch.parsed_columns() and lines.is_live(name):
        return texts_of_lines(lines, name) or _as_written(lines, name)
    return _printed(batch.column(name))


def text_pieces(batch: DocumentBatch, name: str) -> Iterator[TextColumn]:
    """Yield the texts of a batch about a megabyte at a time, in memory that is reused: for reading once."""
    step = max(1, batch.num_items * PIECE_BYTES // max(1, batch.nbytes))
    for first in range(0, batch.num_items, step):
        yield texts_of_batch(batch.slice(first, step), name)


def unparsed_texts(batch: DocumentBatch, name: str) -> TextColumn | None:
    """Return the texts of a field straight from JSON lines, as long as it was not asked for as a column; else None."""
    lines = batch.lines
    if lines is None or name in batch.parsed_columns() or not lines.is_live(name):
        return None
    return texts_of_lines(lines, name)


def texts_of_lines(lines: JsonLines, name: str) -> TextColumn | None:
    """Return the texts of a field; None where it is not always a string or null, or holds half a surrogate pair."""
    if not len(lines):
        return None
    data, starts, stops = _places(lines, name)
    size = ROOM_BEFORE + int((stops - starts).sum()) + _ROOM_BEHIND
    out = np.frombuffer(pa.allocate_buffer(size), np.uint8)  # Arrow's pool gives the same pages to the next batch
    bounds = np.empty(len(lines) + 1, np.int64)
    nulls = np.empty(len(lines), np.uint8)
    is_text = _unescape_strings(*(data, starts, stops, len(lines)), *(_meanings(), out, ROOM_BEFORE, bounds, nulls))
    return TextColumn(out, bounds[:-1].copy(), bounds[1:].copy(), nulls != 0) if is_text else None


def _places(lines: JsonLines, name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return bytes, and where in them the JSON text of each line's field is; nowhere if it is missing."""
    known = lines.places_of(name)
    if known is not None:
        return np.frombuffer(lines.values.buffers()[2], np.uint8), known.starts, known.stops
    values = lines.texts(name)
    base = np.zeros(1, np.uint8)  # texts are anywhere in memory: their places are counted from here
    origin = base.ctypes.data
    starts = np.fromiter((origin if v is None else pa.py_buffer(v).address for v in values), np.int64, len(values))
    starts -= origin
    stops = starts + np.fromiter((0 if v is None else len(v) for v in values), np.int64, len(values))
    return base, starts, stops


@cache
def _meanings() -> NDArray[np.uint8]:
    meanings = np.zeros(256, np.uint8)
    meanings[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
    return meanings


def _as_written(lines: JsonLines, name: str) -> TextColumn:
    """Each text by itself: what it is must not depend on what else is in the batch."""
    values = [None if text is None else _plain(bytes(text)) for text in lines.texts(name)]
    return _printed(pa.chunked_array([from_texts(values)]))


def _plain(text: bytes) -> str | None:
    value = loads(text)
    return value if value is None or isinstance(value, str) else text.decode()


def _printed(column: pa.ChunkedArray) -> TextColumn:
    texts = TextColumn.of(column) or TextColumn.of(column.cast(pa.string()))
    assert texts is not None  # noqa: S101  # it was just made a column of texts
    return texts


Longs = NDArray[np.int64]


@dataclass(frozen=True, order=True)
class Statistic:
    """What is counted: `n` is the number it depends on, if any, and `text` what is looked for, if anything."""

    name: str
    n: int = 0
    text: str = ""


NUM_CHARS = Statistic("num_chars")
PLAIN_CHARS = Statistic("plain_chars")  # a–z A–Z 0–9 newline ? ! , .
DIGIT_CHARS = Statistic("digit_chars")  # 0–9
SPACE_CHARS = Statistic("space_chars")  # tab, newline, carriage return, backspace, space
BRACKET_CHARS = Statistic("bracket_chars")  # { } ⟨ ⟩ [ ] ( )

NUM_WORDS = Statistic("num_words")  # between white space, as all words here but tokens
WORD_CHARS = Statistic("word_chars")
LONGEST_WORD_CHARS = Statistic("longest_word_chars")
WORDS_WITH_LETTER = Statistic("words_with_letter")
SYMBOL_WORDS = Statistic("symbol_words")  # an ellipsis mark, or more than half as many runs of # as characters
COMMON_ENGLISH_WORDS = Statistic("common_english_words")  # the be to of and that have with

NUM_LINES = Statistic("num_lines")  # between newlines, not blank
BULLET_LINES = Statistic("bullet_lines")
LINES_WITHOUT_END_MARK = Statistic("lines_without_end_mark")
ELLIPSIS_LINES = Statistic("ellipsis_lines")
DISTINCT_LINES = Statistic("distinct_lines")
DISTINCT_LINE_CHARS = Statistic("distinct_line_chars")
LINE_CHARS = Statistic("line_chars")
LINES_WITH_END_MARK = Statistic("lines_with_end_mark")  # of any script, as their very last character
NEWLINES = Statistic("newlines")

NUM_PARAGRAPHS = Statistic("num_paragraphs")  # between double newlines, empty ones included
DISTINCT_PARAGRAPHS = Statistic("distinct_paragraphs")
DISTINCT_PARAGRAPH_CHARS = Statistic("distinct_paragraph_chars")
PARAGRAPH_CHARS = Statistic("paragraph_chars")

URL_CHARS = Statistic("url_chars")
PORN_URLS = Statistic("porn_urls")

LOREM_IPSUM = Statistic("lorem_ipsum")
POLICY_PARAGRAPHS = Statistic("policy_paragraphs")

HASHES = Statistic("hashes")  # "#"
ELLIPSES = Statistic("ellipses")  # "..." and "…"
SPLIT_LINES = Statistic("split_lines")  # as `str.splitlines` cuts, blank ones included
SPLIT_BULLET_LINES = Statistic("split_bullet_lines")  # with • or - at the start
SPLIT_ELLIPSIS_LINES = Statistic("split_ellipsis_lines")  # with ... or … at the end


def pieces(kind: int) -> tuple[Statistic, Statistic, Statistic, Statistic]:
    """Pieces of a text, distinct ones, characters in those and in all; `kind` says how it is cut (kernels' layout)."""
    if kind == layout.DOUBLE_NEWLINES:
        return NUM_PARAGRAPHS, DISTINCT_PARAGRAPHS, DISTINCT_PARAGRAPH_CHARS, PARAGRAPH_CHARS
    if kind == layout.FILLED_LINES:
        return NUM_LINES, DISTINCT_LINES, DISTINCT_LINE_CHARS, LINE_CHARS
    number, distinct, distinct_chars, chars = (
        f"{what}pieces" for what in ("", "distinct_", "distinct_chars_", "chars_")
    )
    return Statistic(number, kind), Statistic(distinct, kind), Statistic(distinct_chars, kind), Statistic(chars, kind)


def short_lines(length: int) -> Statistic:
    """Lines, not blank, of at most `length` characters."""
    return Statistic("short_lines", length)


def top_ngram_chars(n: int) -> Statistic:
    """Characters that vanish when the most frequent n-gram of words is deleted wherever it stands."""
    return Statistic("top_ngram_chars", n)


def duplicate_ngram_chars(n: int) -> Statistic:
    """Characters of n-grams of words that occurred before, overlapping ones counted once."""
    return Statistic("duplicate_ngram_chars", n)


def substring_found(substring: str, position: str) -> Statistic:
    """1 if the text has the substring at its start ("prefix"), at its end ("suffix") or anywhere ("any")."""
    return Statistic(f"substring_{position}", text=substring)


@dataclass(frozen=True)
class Pass:
    """What is counted by reading texts once: `run` fills a column for each of the statistics, in their order."""

    statistics: tuple[Statistic, ...]
    run: Callable[[TextColumn, Longs], None]


_FIRST_ROOM = 1 << 14
_MANY_WORDS = 1 << 18  # beyond that, counting them first takes less than room for as many as there could be
_NGRAMS = {"top_ngram_chars": layout.TOP, "duplicate_ngram_chars": layout.DUPLICATE}
_SUBSTRINGS: dict[str, Callable[[bytes, bytes], bool]] = {
    "substring_prefix": bytes.startswith,
    "substring_suffix": bytes.endswith,
    "substring_any": bytes.__contains__,
}
_count_classes = CompiledKernel("text.characters", "count_classes")
_count_characters = CompiledKernel("text.characters", "count_characters")
_count_words = CompiledKernel("text.words", "count_words")
_count_lines = CompiledKernel("text.lines", "count_lines")
_count_pieces = CompiledKernel("text.pieces", "count_pieces")
_count_urls = CompiledKernel("text.urls", "count_urls")
_count_phrases = CompiledKernel("text.phrases", "count_paragraphs_with_phrases")
_count_ngrams = CompiledKernel("text.ngrams", "count_ngrams")
_count_line_shapes = CompiledKernel("text.line_shapes", "count_line_shapes")
_count_filled_lines = CompiledKernel("text.line_shapes", "count_filled_lines")


def plan_passes(wanted: Iterable[Statistic]) -> dict[Statistic, Pass]:
    """Return the pass that counts each statistic, if all of these are wanted sooner or later.

    Some things are counted by a small pass and by one that counts more: the small one is taken where nothing else of
    the larger one is wanted. N-grams of all sizes are counted together, as are substrings.
    """
    wanted = sorted(set(wanted), key=lambda found: (found.n, found.name))
    passes = dict(_PASS_OF)
    for larger, small in ((_CHARACTERS, _CHARACTERS_ALONE), (_LINES, _DISTINCT_LINES)):
        if set(larger.statistics).isdisjoint(set(wanted) - set(small.statistics)):
            passes |= dict.fromkeys(small.statistics, small)
    for length in {found.n for found in wanted if found.name == "short_lines"}:
        shapes = Pass((NUM_LINES, LINES_WITH_END_MARK, short_lines(length), NEWLINES), partial(_run_filled, length))
        passes |= dict.fromkeys(shapes.statistics[1:], shapes)
    for names, run in ((_NGRAMS, _run_ngrams), (_SUBSTRINGS, _run_substrings)):
        several = tuple(found for found in wanted if found.name in names)
        passes |= dict.fromkeys(several, Pass(several, partial(run, several)))
    return {found: passes[found] for found in wanted}


def measure(texts: TextColumn, wanted: Iterable[Statistic]) -> dict[Statistic, Longs]:
    """Return int64[D] for each statistic, one value per document, and for those that come with it."""
    counts: dict[Statistic, Longs] = {}
    for made in dict.fromkeys(plan_passes(wanted).values()):
        counts |= run_pass(made, texts)
    return counts


def run_pass(made: Pass, texts: TextColumn) -> dict[Statistic, Longs]:
    """Run one pass; return a column of counts for each of its statistics."""
    counts = np.zeros((len(texts), len(made.statistics)), np.int64)
    if len(texts) and made.statistics:
        made.run(texts, counts)
    return {found: counts[:, column] for column, found in enumerate(made.statistics)}


def _run(
    kernel: CompiledKernel, table: Callable[[], NDArray[np.generic]] | None, texts: TextColumn, counts: Longs
) -> None:
    looked_up_in = () if table is None else (table(),)
    kernel(texts.data, texts.starts, texts.stops, len(texts), *looked_up_in, counts)


def _run_in_scratch(kernel: CompiledKernel, options: tuple[int, ...], texts: TextColumn, counts: Longs) -> None:
    scratch = np.empty(_FIRST_ROOM, np.int64)
    done = 0
    while True:
        room = (done, scratch, len(scratch))
        done = kernel(texts.data, texts.starts, texts.stops, len(texts), *options, *room, counts)
        if done == len(texts):
            return
        scratch = np.empty(int(scratch[0]), np.int64)


def _run_filled(short_length: int, texts: TextColumn, counts: Longs) -> None:
    marks = _end_marks()
    where = (texts.data, texts.starts, texts.stops, len(texts))
    _count_filled_lines(*where, short_length, marks, len(marks), counts)


def _run_ngrams(asked_for: Sequence[Statistic], texts: TextColumn, counts: Longs) -> None:
    words = (texts.stops - texts.starts + 1) // 2  # no text has more
    large = np.flatnonzero(words > _MANY_WORDS)
    words[large] = run_pass(_WORDS, texts.take(large))[NUM_WORDS]
    asked = np.array([(_NGRAMS[found.name], found.n) for found in asked_for], np.int64)
    room, done = _FIRST_ROOM, 0
    while done < len(texts):
        scratch = np.empty(layout.NGRAM_SCRATCH * room, np.int64)
        done = _count_ngrams(
            *(texts.data, texts.starts, texts.stops, len(texts), done),
            *(words, asked, len(asked), scratch, room, counts),
        )
        room = max(room, int(words[done]) + 8) if done < len(texts) else room


def _run_substrings(asked_for: Sequence[Statistic], texts: TextColumn, counts: Longs) -> None:
    tests = [(_SUBSTRINGS[found.name], found.text.encode("utf-8", "surrogatepass")) for found in asked_for]
    data = texts.data.data
    for row, (start, stop) in enumerate(zip(texts.starts.tolist(), texts.stops.tolist(), strict=True)):
        text = bytes(data[start:stop])
        counts[row] = [is_found(text, wanted) for is_found, wanted in tests]


@cache
def _end_marks() -> Longs:
    from gristmill.kernels.tokens.marks import LINE_ENDS

    return np.array(sorted(int.from_bytes(mark.encode(), "big") for mark in LINE_ENDS), np.int64)


def _pieces_pass(kind: int) -> Pass:
    return Pass(pieces(kind), partial(_run_in_scratch, _count_pieces, (kind,)))


_CHARACTERS_ALONE = Pass((NUM_CHARS,), partial(_run, _count_characters, None))
_CHARACTERS = Pass(
    (NUM_CHARS, PLAIN_CHARS, DIGIT_CHARS, SPACE_CHARS, BRACKET_CHARS),
    partial(_run, _count_classes, tables.character_classes),
)
_WORDS = Pass(
    (NUM_WORDS, WORD_CHARS, LONGEST_WORD_CHARS, WORDS_WITH_LETTER, SYMBOL_WORDS, COMMON_ENGLISH_WORDS),
    partial(_run, _count_words, tables.letters),
)
_DISTINCT_LINES = _pieces_pass(layout.FILLED_LINES)
_LINES = Pass(
    (
        *(NUM_LINES, BULLET_LINES, LINES_WITHOUT_END_MARK, ELLIPSIS_LINES),
        *(DISTINCT_LINES, DISTINCT_LINE_CHARS, LINE_CHARS),
    ),
    partial(_run_in_scratch, _count_lines, ()),
)
_LINE_SHAPES = Pass(
    (NUM_CHARS, HASHES, ELLIPSES, SPLIT_LINES, SPLIT_BULLET_LINES, SPLIT_ELLIPSIS_LINES),
    partial(_run, _count_line_shapes, None),
)
_URLS = Pass((URL_CHARS, PORN_URLS), partial(_run, _count_urls, tables.url_classes))
_PHRASES = Pass((LOREM_IPSUM, POLICY_PARAGRAPHS), partial(_run, _count_phrases, tables.boilerplate_phrases))
_PIECES = tuple(map(_pieces_pass, (layout.DOUBLE_NEWLINES, layout.PARAGRAPHS, layout.LINES)))
# Where two count the same thing, the later one does: counting the shapes of lines takes longer than the characters.
_ALL = (_LINE_SHAPES, _CHARACTERS, _WORDS, _LINES, *_PIECES, _URLS, _PHRASES)
_PASS_OF = {found: made for made in _ALL for found in made.statistics}
