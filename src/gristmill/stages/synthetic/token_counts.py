"""How many tokens a text has: by a tokenizer's own count, or by an estimate that needs nothing.

Limits on prompts and answers are in tokens of the model that is asked. Whoever has its tokenizer names it; whoever
asks a server often has not, and does not want a download for the sake of a limit that is round anyway. The estimate
is made of what tokenizers of 30,000 to 130,000 entries have in common: a short word is one token, a long one several,
a punctuation mark is one, and scripts that few entries cover cost more. docs/adr/0026-llm-stages.md says how far off
it is, by script.
"""

import re
from collections.abc import Callable

CountTokens = Callable[[str], int]

# Alternatives in the order of how often they match. A run of letters beyond ASCII is measured in characters, because
# their bytes (two or three each) are what such tokenizers fall back to.
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
