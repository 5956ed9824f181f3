"""Documents in segments that fit a prompt, and what an answer must satisfy to be kept.

A model answers well about a page and badly about a book. So a document is cut at its line breaks, lines that no prompt
can hold are left out, neighbours are joined again as long as they fit, and what is then too short to say anything is
left out too. What is left out is counted by the caller, never lost in silence. Nothing here asks a model.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gristmill.errors import ConfigError
from gristmill.stages.synthetic.token_counts import CountTokens

SPARE_TOKENS = 2  # of the input limit: what a chat template puts around a message
_LEFT_OUT = ("too_short_documents", "too_long_lines", "too_short_segments")


@dataclass(frozen=True)
class TokenLimits:
    """What one task asks of the lengths of documents, segments, prompts and answers, in tokens.

    `min_result` is for the whole result of a document: its segments' answers together.
    """

    min_document: int
    min_segment: int
    max_input: int
    max_output: int
    max_answer: int
    min_result: int


@dataclass
class Segmented:
    """The segments of one document, and how much was left out on the way."""

    segments: list[str] = field(default_factory=list)
    too_short_documents: int = 0
    too_long_lines: int = 0
    too_short_segments: int = 0

    def left_out(self) -> Iterator[tuple[str, int]]:
        """What was left out, by name, where anything was."""
        yield from ((name, number) for name in _LEFT_OUT if (number := getattr(self, name)))


def room_for_text(limits: TokenLimits, prompt_tokens: int, *, who: str) -> int:
    """Return how many tokens of a document a prompt can hold."""
    room = limits.max_input - prompt_tokens - SPARE_TOKENS
    if room < max(1, limits.min_segment):
        raise ConfigError(
            f"{who}: expected a prompt that leaves room for a text in {limits.max_input} tokens; "
            f"got one of {prompt_tokens}"
        )
    return room


def segment(text: str, limits: TokenLimits, room: int, count: CountTokens) -> Segmented:
    """Cut a document into segments of whole lines, each of at most `room` tokens.

    A line that is left out ends a segment: the lines before and after it were not neighbours in the document.
    """
    lines = text.split("\n")
    lengths = [count(line) for line in lines]
    found = Segmented()
    if sum(lengths) + len(lines) - 1 < limits.min_document:
        found.too_short_documents = 1
        return found
    for first, last in _runs(lengths, room, found):
        joined = "\n".join(lines[first:last])
        if sum(lengths[first:last]) < limits.min_segment or not joined.strip():
            found.too_short_segments += bool(joined.strip())
        else:
            found.segments.append(joined)
    return found


def _runs(lengths: list[int], room: int, found: Segmented) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of lines that go together; a line break between two counts as one token."""
    first, taken = 0, -1
    for number, length in enumerate(lengths):
        if length > room:
            found.too_long_lines += 1
            if number > first:
                yield first, number
            first, taken = number + 1, -1
        elif taken + 1 + length > room:
            yield first, number
            first, taken = number, length
        else:
            taken += 1 + length
    if len(lengths) > first:
        yield first, len(lengths)
