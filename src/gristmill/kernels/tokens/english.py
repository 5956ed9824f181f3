"""`split_english`: a text as the tokens that spaCy's blank English pipeline makes of it.

The documented algorithm: cut at white space; then, piece by piece, take prefixes and suffixes off until an exception is
left or nothing more comes off; keep what looks like a URL; cut the rest at infixes; last, rejoin exceptions that the
cutting took apart. This is the definition, in plain Python; `tokenize` is the compiled form of it.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from gristmill.kernels.tokens.english_characters import (
    CURRENCY,
    HYPHENS,
    PUNCTUATION,
    QUOTES,
    UNITS,
    character_class,
)
from gristmill.kernels.tokens.english_exceptions import exceptions


class Rules(NamedTuple):
    """Compiled patterns. A prefix is matched at the start, a suffix is the longest one found at the end."""

    prefix: re.Pattern[str]
    suffix: re.Pattern[str]
    infix: re.Pattern[str]
    url: re.Pattern[str]


def split_english(text: str) -> list[str]:
    """Return the tokens of a text in order, including white space that is a token."""
    return [token for token, _ in _rejoin(list(_first_pass(text)))]


def _first_pass(text: str) -> Iterator[tuple[str, str]]:
    """Yield (token, blank after it): one blank after a token belongs to it, other white space is a token."""
    for piece in re.finditer(r"(\s+)|(\S+)( ?)", text):
        space, chunk, blank = piece.groups()
        if space:
            yield space, ""
            continue
        *first, last = _split_affixes(chunk, known=exceptions())
        yield from ((token, "") for token in first)
        yield last, blank


def _split_affixes(chunk: str, *, known: dict[str, list[str]]) -> list[str]:
    rules = english_rules()
    prefixes: list[str] = []
    suffixes: list[str] = []
    last_size = -1
    while chunk and chunk not in known and len(chunk) != last_size:
        last_size = len(chunk)
        prefix = _matched(rules.prefix.match(chunk))
        without_prefix = chunk[len(prefix) :]
        if prefix and without_prefix in known:
            prefixes.append(prefix)
            chunk = without_prefix
            break
        suffix = _matched(rules.suffix.search(without_prefix))
        without_suffix = chunk[: len(chunk) - len(suffix)]
        if suffix and without_suffix in known:
            suffixes.append(suffix)
            chunk = without_suffix
            break
        chunk = without_suffix[len(prefix) :]
        prefixes += [prefix] if prefix else []
        suffixes += [suffix] if suffix else []
    return [*prefixes, *_split_middle(chunk, known), *reversed(suffixes)]


def _matched(match: re.Match[str] | None) -> str:
    return match.group() if match else ""


def _split_middle(chunk: str, known: dict[str, list[str]]) -> list[str]:
    rules = english_rules()
    if not chunk or chunk in known:
        return known.get(chunk, [])
    if rules.url.match(chunk):
        return [chunk]
    tokens: list[str] = []
    start = 0
    for match in rules.infix.finditer(chunk):
        if match.start() == 0:
            continue  # nothing before it to be cut from
        tokens += [chunk[start : match.start()], match.group()]
        start = match.end()
    return [token for token in (*tokens, chunk[start:]) if token]


def _rejoin(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Put exceptions together again that affixes cut: longest first, and where they overlap the first one.

    A candidate that spans a blank is not an exception, but it does keep others away from the tokens it covers.
    """
    candidates = sorted(_candidates([token for token, _ in pieces]), key=lambda span: (span[0] - span[1], span[0]))
    covered: set[int] = set()
    chosen: dict[int, int] = {}
    for start, end in candidates:
        if start not in covered and end - 1 not in covered:
            chosen[start] = end
        covered.update(range(start, end))
    joined: list[tuple[str, str]] = []
    at = 0
    while at < len(pieces):
        end = chosen.get(at, at + 1)
        tokens = _tokens_of_span(pieces[at:end]) if at in chosen else None
        joined += (
            pieces[at:end] if tokens is None else [*((t, "") for t in tokens[:-1]), (tokens[-1], pieces[end - 1][1])]
        )
        at = end
    return joined


def _tokens_of_span(span: list[tuple[str, str]]) -> list[str] | None:
    text = "".join(token + blank for token, blank in span[:-1]) + span[-1][0]
    return exceptions().get(text)


def _candidates(tokens: list[str]) -> Iterator[tuple[int, int]]:
    patterns = _patterns()
    for start, token in enumerate(tokens):
        for pattern in patterns.get(token, ()):
            if tuple(tokens[start : start + len(pattern)]) == pattern:
                yield start, start + len(pattern)


def exception_patterns() -> list[tuple[str, ...]]:
    """Return the exceptions that are put together again, as the tokens they are first cut into."""
    return [pattern for group in _patterns().values() for pattern in group]


@cache
def _patterns() -> dict[str, list[tuple[str, ...]]]:
    """Exceptions that affixes would cut or find something in, as the tokens they are cut into, by the first of them."""
    rules = english_rules()
    by_first: dict[str, list[tuple[str, ...]]] = {}
    for text in exceptions():
        if rules.prefix.match(text) or rules.suffix.search(text) or rules.infix.search(text) or text == " ":
            tokens = tuple(_split_affixes(text, known={}))
            by_first.setdefault(tokens[0], []).append(tokens)
    return by_first


@cache
def english_rules() -> Rules:
    """Compile the patterns; about a tenth of a second, once in a worker."""
    alpha, lower, upper, icons = (character_class(name) for name in ("alpha", "lower", "upper", "icons"))
    punctuation, quotes = re.escape(PUNCTUATION), re.escape(QUOTES)
    money = "|".join(map(re.escape, CURRENCY))
    units = "|".join(map(re.escape, UNITS))
    hyphens = "|".join(map(re.escape, HYPHENS))
    before_full_stop = rf"0-9{lower}%²\-+|{punctuation}{quotes}"
    prefix = rf"[§%=—–{punctuation}{quotes}{icons}]|\.\.+|\+(?![0-9])|{money}"
    suffix = (
        rf"(?:[{punctuation}{quotes}{icons}—–]|……|\.\.+|['’][sS]"
        rf"|(?<=[0-9])(?:\+|{money}|{units})|(?<=[{before_full_stop}])\.|(?<=[{upper}][{upper}]|°[FfCcKk])\.)\Z"
    )
    infix = (
        rf"\.\.+|[…{icons}]|(?<=[0-9])[+\-*^](?=[0-9-])|(?<=[{lower}{quotes}])\.(?=[{upper}{quotes}])"
        rf"|(?<=[{alpha}]),(?=[{alpha}])|(?<=[{alpha}0-9])(?:{hyphens}|[:<>=/])(?=[{alpha}])"
    )
    return Rules(re.compile(prefix), re.compile(suffix), re.compile(infix), re.compile(_url_pattern(lower)))


def _url_pattern(lower: str) -> str:
    """The form of a web or mail address: [scheme://] [user@] (public IPv4 or domain) [:port] [path]."""
    private = (
        r"(?:10|127)(?:\.\d{1,3}){3}|(?:169\.254|192\.168)(?:\.\d{1,3}){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2}"
    )
    octet = r"\.(?:1?\d{1,2}|2[0-4]\d|25[0-5])"
    address = rf"(?!{private})(?:[1-9]\d?|1\d\d|2[01]\d|22[0-3])(?:{octet}){{2}}\.(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-4])"
    letter = r"A-Za-z0-9\u00a1-\uffff"
    domain = rf"(?:(?:[{letter}][{letter}_-]{{0,62}})?[{letter}]\.)+[{lower}]{{2,63}}"
    return rf"(?:[\w+\-.]{{2,}}://)?(?:\S+@)?(?:{address}|{domain})(?::\d{{2,5}})?(?:[/?#]\S*)?\Z"
