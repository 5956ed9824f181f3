"""`measure`: count things in many texts at once.

Statistics are counted by *passes*, each of which reads the text once and counts several; asking for one of a pass costs
what asking for all of them does. `pass_of` says which those are, so that a caller can ask for all it needs at once.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text import layout
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.statistics import statistic as s
from gristmill.stages.text.statistics import tables
from gristmill.stages.text.statistics.statistic import Statistic
from gristmill.stages.text.statistics.text_column import TextColumn

Counts = dict[Statistic, NDArray[np.int64]]

_FIRST_ROOM = 1 << 14
_MANY_WORDS = 1 << 18  # beyond that, counting them first takes less than the room for as many as there could be
_NGRAMS = {"top_ngram_chars": layout.TOP, "duplicate_ngram_chars": layout.DUPLICATE}
_SUBSTRINGS: dict[str, Callable[[bytes, bytes], bool]] = {
    "substring_prefix": bytes.startswith,
    "substring_suffix": bytes.endswith,
    "substring_any": bytes.__contains__,
}


@dataclass(frozen=True)
class Pass:
    """What one kernel counts, column by column: `columns` of them, or one for each statistic it is asked for."""

    name: str
    statistics: tuple[Statistic, ...]
    columns: int | None = None


CHARACTERS = Pass(
    "characters", (s.NUM_CHARS, s.PLAIN_CHARS, s.DIGIT_CHARS, s.SPACE_CHARS, s.BRACKET_CHARS), layout.CHARACTER_COLUMNS
)
WORDS = Pass(
    "words",
    (s.NUM_WORDS, s.WORD_CHARS, s.LONGEST_WORD_CHARS, s.WORDS_WITH_LETTER, s.SYMBOL_WORDS, s.COMMON_ENGLISH_WORDS),
    layout.WORD_COLUMNS,
)
LINE_COUNTS = Pass(
    "lines",
    (
        s.NUM_LINES,
        s.BULLET_LINES,
        s.LINES_WITHOUT_END_MARK,
        s.ELLIPSIS_LINES,
        s.DISTINCT_LINES,
        s.DISTINCT_LINE_CHARS,
        s.LINE_CHARS,
    ),
    layout.LINE_COLUMNS,
)
PARAGRAPH_COUNTS = Pass(
    "paragraphs",
    (s.NUM_PARAGRAPHS, s.DISTINCT_PARAGRAPHS, s.DISTINCT_PARAGRAPH_CHARS, s.PARAGRAPH_CHARS),
    layout.PIECE_COLUMNS,
)
URLS = Pass("urls", (s.URL_CHARS, s.PORN_URLS), layout.URL_COLUMNS)
PHRASES = Pass("phrases", (s.LOREM_IPSUM, s.POLICY_PARAGRAPHS), layout.PHRASE_COLUMNS)

_PASSES = (CHARACTERS, WORDS, LINE_COUNTS, PARAGRAPH_COUNTS, URLS, PHRASES)
_PASS_OF = {found: made for made in _PASSES for found in made.statistics}
_count_classes = CompiledKernel("text.characters", "count_classes")
_count_characters = CompiledKernel("text.characters", "count_characters")
_count_words = CompiledKernel("text.words", "count_words")
_count_lines = CompiledKernel("text.lines", "count_lines")
_count_pieces = CompiledKernel("text.pieces", "count_pieces")
_count_urls = CompiledKernel("text.urls", "count_urls")
_count_phrases = CompiledKernel("text.phrases", "count_paragraphs_with_phrases")
_count_ngrams = CompiledKernel("text.ngrams", "count_ngrams")


def plan_passes(wanted: Iterable[Statistic]) -> dict[Statistic, Pass]:
    """Return the pass that counts each statistic; all n-grams that are wanted are counted in one."""
    wanted = sorted(set(wanted), key=lambda found: (found.n, found.name))
    passes = dict(_PASS_OF)
    for name, own in (("ngrams", _NGRAMS), ("substrings", _SUBSTRINGS)):
        made = Pass(name, tuple(found for found in wanted if found.name in own))
        passes |= dict.fromkeys(made.statistics, made)
    return {found: passes[found] for found in wanted}


def measure(texts: TextColumn, wanted: Iterable[Statistic]) -> Counts:
    """Return int64[D] for each statistic, one value per document, and for those that come with it."""
    counts: Counts = {}
    for made in dict.fromkeys(plan_passes(wanted).values()):
        counts |= run_pass(made, texts)
    return counts


def run_pass(made: Pass, texts: TextColumn) -> Counts:
    """Run one pass; return a column of counts for each of its statistics."""
    columns = len(made.statistics) if made.columns is None else made.columns
    counts = np.zeros((len(texts), columns), np.int64)
    if len(texts) and made.statistics:
        _RUNNERS[made.name](texts, counts, made.statistics)
    return {found: counts[:, column] for column, found in zip(range(columns), made.statistics, strict=True)}


def _run(kernel: CompiledKernel, texts: TextColumn, table: NDArray[np.generic], counts: NDArray[np.int64]) -> None:
    kernel(texts.data, texts.starts, texts.stops, len(texts), table, counts)


def count_characters(texts: TextColumn) -> NDArray[np.int64]:
    """Return int64[D], for who needs no other statistic of that pass."""
    counts = np.zeros(len(texts), np.int64)
    _count_characters(texts.data, texts.starts, texts.stops, len(texts), counts)
    return counts


def count_pieces(texts: TextColumn, kind: int) -> NDArray[np.int64]:
    """Return int64[D, 4]: pieces of each text, distinct ones, characters in those and in all."""
    counts = np.zeros((len(texts), layout.PIECE_COLUMNS), np.int64)
    _count_in_scratch(_count_pieces, texts, counts, kind)
    return counts


def _count_in_scratch(kernel: CompiledKernel, texts: TextColumn, counts: NDArray[np.int64], *options: int) -> None:
    scratch = np.empty(_FIRST_ROOM, np.int64)
    done = 0
    while True:
        room = (done, scratch, len(scratch))
        done = kernel(texts.data, texts.starts, texts.stops, len(texts), *options, *room, counts)
        if done == len(texts):
            return
        scratch = np.empty(int(scratch[0]), np.int64)


def _run_ngrams(texts: TextColumn, counts: NDArray[np.int64], statistics: Sequence[Statistic]) -> None:
    words = (texts.stops - texts.starts + 1) // 2  # no text has more
    large = np.flatnonzero(words > _MANY_WORDS)
    words[large] = run_pass(WORDS, texts.take(large))[s.NUM_WORDS]
    asked = np.array([(_NGRAMS[found.name], found.n) for found in statistics], np.int64)
    room, done = _FIRST_ROOM, 0
    while done < len(texts):
        scratch = np.empty(layout.NGRAM_SCRATCH * room, np.int64)
        done = _count_ngrams(
            *(texts.data, texts.starts, texts.stops, len(texts), done),
            *(words, asked, len(asked), scratch, room, counts),
        )
        room = max(room, int(words[done]) + 8) if done < len(texts) else room


def _run_substrings(texts: TextColumn, counts: NDArray[np.int64], statistics: Sequence[Statistic]) -> None:
    tests = [(_SUBSTRINGS[found.name], found.text.encode("utf-8", "surrogatepass")) for found in statistics]
    data = texts.data.data
    for row, (start, stop) in enumerate(zip(texts.starts.tolist(), texts.stops.tolist(), strict=True)):
        text = bytes(data[start:stop])
        counts[row] = [is_found(text, wanted) for is_found, wanted in tests]


_RUNNERS = {
    "characters": lambda texts, counts, _: _run(_count_classes, texts, tables.character_classes(), counts),
    "words": lambda texts, counts, _: _run(_count_words, texts, tables.letters(), counts),
    "lines": lambda texts, counts, _: _count_in_scratch(_count_lines, texts, counts),
    "paragraphs": lambda texts, counts, _: _count_in_scratch(_count_pieces, texts, counts, layout.DOUBLE_NEWLINES),
    "urls": lambda texts, counts, _: _run(_count_urls, texts, tables.url_classes(), counts),
    "phrases": lambda texts, counts, _: _run(_count_phrases, texts, tables.boilerplate_phrases(), counts),
    "ngrams": _run_ngrams,
    "substrings": _run_substrings,
}
