"""Where the comments of a program are, in several languages. Texts in, texts out; no filter here.

A language is one expression of alternatives: literals, which may hold what looks like a comment, and comments. Each
alternative that opens something also ends at the end of the text, so that no position is scanned twice.
"""

import re

# Possessive (++, *+): no backtracking, hence no memory for it, which a long literal would fill.
_DOUBLE = r'"(?:[^"\\\n]++|\\.)*+(?:"|$)'
_SINGLE = r"'(?:[^'\\\n]++|\\.)*+(?:'|$)"
_BACKTICK = r"`(?:[^`\\]++|\\.)*+(?:`|\Z)"
_RAW = r"`[^`]*+(?:`|\Z)"
_TRIPLE = r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\Z)' + "|" + r"""'{3}(?:[^'\\]++|\\.|'(?!''))*+(?:'{3}|\Z)"""
_SLASHES = r"//(?P<line>[^\n]*)"
_BLOCK = r"/\*(?P<block>.*?)(?:\*/|\Z)"
_HASH = r"#(?P<line>[^\n]*)"
_HASH_AT_WORD = r"(?<![^\s;])#(?P<line>[^\n]*)"  # in a shell, $# and a#b are not comments
_MARKUP = r"<!--(?P<block>.*?)(?:-->|\Z)"
_BEGIN_END = r"^=begin\b(?P<block>.*?)(?:^=end\b|\Z)"


def _compiled(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.DOTALL | re.MULTILINE)


_C = _compiled(_DOUBLE, _SINGLE, _SLASHES, _BLOCK)
_GO = _compiled(_DOUBLE, _SINGLE, _RAW, _SLASHES, _BLOCK)
_JAVASCRIPT = _compiled(_DOUBLE, _SINGLE, _BACKTICK, _SLASHES, _BLOCK)
_PYTHON = _compiled(_TRIPLE, _DOUBLE, _SINGLE, _HASH)
_RUBY = _compiled(_DOUBLE, _SINGLE, _BEGIN_END, _HASH)
_SHELL = _compiled(_DOUBLE, r"'[^']*(?:'|\Z)", _HASH_AT_WORD)
_XML = _compiled(_MARKUP)

LANGUAGES: dict[str, re.Pattern[str]] = {
    "application/javascript": _JAVASCRIPT,
    "text/html": _XML,
    "text/x-c": _C,
    "text/x-c++": _C,
    "text/x-csharp": _C,
    "text/x-go": _GO,
    "text/x-java": _C,
    "text/x-java-source": _C,
    "text/x-javascript": _JAVASCRIPT,
    "text/x-python": _PYTHON,
    "text/x-python-script": _PYTHON,
    "text/x-ruby": _RUBY,
    "text/x-rust": _compiled(_DOUBLE, _SLASHES, _BLOCK),  # a single mark may begin a lifetime
    "text/x-shellscript": _SHELL,
    "text/xml": _XML,
}


def find_comments(source: str, language: str) -> list[str]:
    """Return the comments of a program without their marks; `language` is one of `LANGUAGES`.

    >>> find_comments("x = 1; // one", "text/x-c")
    [' one']
    """
    found = (match.groupdict() for match in LANGUAGES[language].finditer(source))
    return [text for groups in found for text in groups.values() if text is not None]
