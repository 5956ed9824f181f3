"""Texts in segments to translate, and put together again around their translations.

A text is taken apart into pieces, some of which are to be translated and the rest stays as it is: line breaks,
indentation, code blocks, lines without a letter. The pieces joined are the text, always, so whatever is not translated
comes out byte for byte, and a translation can only ever stand where its segment stood.

*Coarse*: a segment is a line, without the white space around it. *Fine*: a sentence of such a line. Sentences are cut
by their end marks, with what follows and a short list of abbreviations; no language model is needed for that, and a
sentence cut in the wrong place is translated in two parts, which is the worst that happens.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Mode = Literal["coarse", "fine"]
MODES: tuple[Mode, ...] = ("coarse", "fine")

_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
# An end mark, what may close a sentence after it, and the white space that follows; ideographic marks need no space.
# Only the first of several marks begins an end: a line of 20,000 dots would take seconds otherwise.
_SENTENCE_END = re.compile(r"""(?:(?<![.!?…])[.!?…]++["'”’»)\]]*+(?=\s)|[。！？｡]++[」』”）]*+)\s*+""")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“‘«])(?:[A-Za-z]|[A-Za-z]\.[A-Za-z]|Mrs?|Ms|Dr|Prof|St|Jr|Sr|vs|etc|cf|approx|Fig|No|Nr|Vol|ca|bzw|usw|"
    r"Sra?|Mme|Mlle|pp?)\.$"
)


@dataclass(frozen=True)
class Template:
    """The pieces of a text; `translated` are the numbers of those that are segments."""

    pieces: tuple[str, ...]
    translated: tuple[int, ...]

    def segments(self) -> list[str]:
        """The pieces to translate, in order."""
        return [self.pieces[number] for number in self.translated]

    def rebuild(self, translations: Sequence[str]) -> str:
        """Return the text with a translation in the place of each segment."""
        pieces = list(self.pieces)
        for number, translation in zip(self.translated, translations, strict=True):
            pieces[number] = translation
        return "".join(pieces)


def take_apart(text: str, mode: Mode = "coarse", *, min_segment_chars: int = 0) -> Template:
    """Return the template of a text; one that is shorter than `min_segment_chars` is a single segment.

    >>> take_apart("A title\\n\\n  It rains. It pours.", "fine").segments()
    ['A title', 'It rains.', 'It pours.']
    """
    if len(text) < min_segment_chars:
        return _template(_around(text))
    cut = _sentences if mode == "fine" else _around
    return _template(piece for line, is_code in _lines(text) for piece in ([(line, False)] if is_code else cut(line)))


def _template(pieces: Iterator[tuple[str, bool]]) -> Template:
    texts: list[str] = []
    segments: list[int] = []
    between: list[str] = []  # what is not translated, until the next segment: a block of code may have 100,000 lines
    for text, is_segment in pieces:
        if not is_segment:
            between.append(text)
            continue
        texts += [joined] if (joined := "".join(between)) else []
        between.clear()
        segments.append(len(texts))
        texts.append(text)
    texts += [joined] if (joined := "".join(between)) else []
    return Template(tuple(texts), tuple(segments))


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line with its line break, and whether it belongs to a block of code, fences included.

    A fence is closed by one of the same character that is at least as long; one that nothing closes holds the rest.
    """
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            yield line, True
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark:
            fence = mark[1]
            yield line, True
        else:
            yield line, False


def _around(line: str) -> Iterator[tuple[str, bool]]:
    """Yield white space, what is between, white space."""
    body = line.strip()
    start = line.find(body)
    yield line[:start], False
    yield body, is_translatable(body)
    yield line[start + len(body) :], False


def _sentences(line: str) -> Iterator[tuple[str, bool]]:
    if not is_translatable(line.strip()):
        yield line, False
        return
    start = 0
    for end in _SENTENCE_END.finditer(line):
        if not _ABBREVIATION.search(line, max(0, end.start() - 10), end.start() + 1):
            yield from _around(line[start : end.end()])
            start = end.end()
    yield from _around(line[start:])


def is_translatable(line: str) -> bool:
    """Whether a line says anything in a language: not a rule, a number, a tag alone, or JSON for a machine."""
    if not any(map(str.isalpha, line)):
        return False
    if line.startswith("<") and line.endswith(">") and "<" not in line[1:-1] and ">" not in line[1:-1]:
        return False
    if line[0] + line[-1] in ("{}", "[]"):
        try:
            return not isinstance(json.loads(line), dict | list)
        except (ValueError, RecursionError):
            return True
    return True
