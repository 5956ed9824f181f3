"""`ENTITIES`: what can be found, each by its form and, where a number has one, a check.

`hint` is an RE2 pattern for whole columns: a text it does not match holds no such thing. `searches` find where. Every
repetition in them is bounded, so no text takes quadratic time; digits are 0–9 only. The names are Presidio's, which
users of other tools know.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from gristmill.stages.text.modifiers.pii.checks import is_account_number, is_card_number, is_ip_address


class Search(NamedTuple):
    """A pattern, and a string without which it finds nothing; looking for that is ten times as fast."""

    needs: str
    pattern: re.Pattern[str]


class Entity(NamedTuple):
    """One kind of personal data. Of what a pattern finds, only the first `real_chars(found)` characters count."""

    hint: str
    searches: tuple[Search, ...]
    real_chars: Callable[[str], int] = len


def _email(text: str) -> int:
    local = text.rpartition("@")[0]
    return 0 if local.startswith(".") or local.endswith(".") or ".." in local else len(text)


def _phone_number(text: str) -> int:
    num_digits = sum(character.isdigit() for character in text)
    return len(text) if 7 <= num_digits <= 15 else 0  # ITU-T E.164 allows 15


def _ip_address(text: str) -> int:
    # "::" is punctuation, and "a::b" a name in a program.
    plausible = "." in text or (any(character.isdigit() for character in text) and (text[0] == ":" or len(text) > 5))
    return len(text) if plausible and is_ip_address(text) and not _is_section_number(text) else 0


def _is_section_number(text: str) -> bool:
    """Four different single digits, as in 1.2.3.4: headings and versions look so, and hardly any address in use does.

    Addresses of one digit four times are name servers that many texts mention (1.1.1.1, 8.8.8.8, 9.9.9.9).
    """
    return len(text) == len("1.2.3.4") and text.count(".") == 3 and len(set(text)) > 2


def _card_number(text: str) -> int:
    """The number may be followed by others, such as its year of expiry: then it ends before a gap."""
    end = len(text)
    while end > 0 and not is_card_number(text[:end]):
        end = max(text.rfind(" ", 0, end), text.rfind("-", 0, end), 0)
    return end


def _account_number(text: str) -> int:
    ends = [end for end in range(len(text), 0, -1) if end == len(text) or text[end] == " "]
    return next((end for end in ends if is_account_number(text[:end])), 0)


def _starts(first: str, *, not_behind: str) -> str:
    """Return a pattern for a first character that does not stand behind certain others.

    In this order, Python looks for the character itself; with the look-behind first it would try every position
    (measured: 10 MB/s against 90).
    """
    return f"{first}(?<![{not_behind}]{first})"


_WORD = "A-Za-z0-9_"
_NO_WORD_AFTER = f"(?![{_WORD}])"
_NUMBER_ENDS = r"(?![A-Za-z0-9_]|[.,-][0-9])"
_LOCAL_PART = r"A-Za-z0-9.!#$%&'*+/=?^_`{|}~-"

# Key formats as their issuers document them: what they begin with, and what follows.
_KEYS = {
    **dict.fromkeys(("AKIA", "ASIA", "AGPA", "AIDA", "AROA"), "[A-Z2-7]{16}"),
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "[A-Za-z0-9]{36,255}"),
    "github_pat_": "[A-Za-z0-9_]{22,255}",
    "glpat-": "[A-Za-z0-9_-]{20,64}",
    "xox": "[abposr]-[A-Za-z0-9-]{10,250}",
    "AIza": "[A-Za-z0-9_-]{35}",
    **dict.fromkeys(("sk_", "rk_", "pk_"), "(?:live|test)_[A-Za-z0-9]{16,128}"),
    "sk-": "[A-Za-z0-9_-]{20,200}",
    "npm_": "[A-Za-z0-9]{36}",
    "hf_": "[A-Za-z0-9]{30,64}",
    "eyJ": r"[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,4096}",
}
_PRIVATE_KEY = "-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY-----[^-]{0,8192}(?:-----END [A-Z ]{0,24}PRIVATE KEY-----)?"

# A national number needs the shape of one ((212) 555-0123, 212.555.0123): seven digits alone are rarely a phone.
_REST = r"[2-9][0-9]{2}[ .-][0-9]{4}"
_GROUPS = r"[1-9][0-9]{0,2}(?>(?:[ .\-/]?(?:[0-9]{1,4}|\([0-9]{1,4}\))){2,6})"

ENTITIES: dict[str, Entity] = {
    # First what may hold others: a key may look like a number, an address may end in digits.
    "API_KEY": Entity(
        f"(?:{'|'.join(_KEYS)})[A-Za-z0-9_.-]{{12}}|-----BEGIN",
        (
            Search("-----BEGIN", re.compile(_PRIVATE_KEY)),
            *(
                Search(key, re.compile(f"{_starts(key, not_behind=_WORD)}{rest}{_NO_WORD_AFTER}"))
                for key, rest in _KEYS.items()
            ),
        ),
    ),
    "EMAIL_ADDRESS": Entity(
        "@",
        (
            Search(
                "@",
                re.compile(
                    rf"(?<![{_LOCAL_PART}])[{_LOCAL_PART}]{{1,64}}"
                    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
                ),
            ),
        ),
        _email,
    ),
    "IBAN_CODE": Entity(
        "[A-Z]{2}[0-9]{2}[ A-Z0-9]{8}",
        (
            Search(
                "",
                re.compile(
                    _starts("[A-Z]", not_behind=_WORD)
                    + f"[A-Z][0-9]{{2}}(?:[ ]?[A-Z0-9]{{4}}){{2,7}}(?:[ ]?[A-Z0-9]{{1,3}})?{_NO_WORD_AFTER}"
                ),
            ),
        ),
        _account_number,
    ),
    "CREDIT_CARD": Entity(
        "[0-9](?:[ -]?[0-9]){12}",
        (
            Search(
                "", re.compile(_starts("[2-6]", not_behind="0-9A-Za-z.,-") + f"(?:[ -]?[0-9]){{12,18}}{_NUMBER_ENDS}")
            ),
        ),
        _card_number,
    ),
    "US_SSN": Entity(
        "[0-9]{3}-[0-9]{2}-[0-9]{4}",
        # No number has 000, 666 or 9xx first, 00 in the middle or 0000 at the end (Social Security Administration).
        (
            Search(
                "-",
                re.compile(
                    _starts("[0-8]", not_behind="0-9A-Za-z-")
                    + r"(?<!0(?=00))(?<!6(?=66))[0-9]{2}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![0-9A-Za-z-])"
                ),
            ),
        ),
    ),
    "IP_ADDRESS": Entity(
        r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]|(?:[0-9a-fA-F]{1,4}:){2}[0-9a-fA-F:]|::[0-9a-fA-F]{1,4}:"
        r"|[0-9][0-9a-fA-F]{0,3}::|::[0-9a-fA-F]{0,3}[0-9]",
        (
            Search(
                ":",
                re.compile(
                    _starts("[0-9a-fA-F]", not_behind="0-9A-Za-z:")
                    + r"[0-9a-fA-F]{0,3}(?::[0-9a-fA-F]{1,4}){7}(?![0-9A-Za-z:])"
                ),
            ),
            Search(
                "::",
                re.compile(
                    r"(?<![0-9A-Za-z:])(?:[0-9a-fA-F]{0,4}:){2,7}"
                    r"(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9a-fA-F]{1,4})?(?![0-9A-Za-z:])"
                ),
            ),
            Search(
                ".",
                re.compile(
                    _starts("[0-9]", not_behind="0-9A-Za-z.") + r"[0-9]{0,2}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z]|\.[0-9])"
                ),
            ),
        ),
        _ip_address,
    ),
    "PHONE_NUMBER": Entity(
        r"\+[1-9][0-9 .()/-]{6}|00[1-9][0-9 .()/-]{6}|[0-9]\)?[ .-]?[2-9][0-9]{2}[ .-][0-9]{4}",
        (
            Search("+", re.compile(rf"{_starts('[+]', not_behind='0-9A-Za-z')}{_GROUPS}{_NUMBER_ENDS}")),
            # Not behind another group of digits: then it is the middle of a longer number.
            Search("00", re.compile(rf"00(?<![0-9A-Za-z.,/-]00)(?<![0-9] 00){_GROUPS}{_NUMBER_ENDS}")),
            Search(
                "(",
                re.compile(rf"{_starts('[(]', not_behind='0-9A-Za-z')}[2-9][0-9]{{2}}\)[ .-]?{_REST}{_NUMBER_ENDS}"),
            ),
            Search(
                "", re.compile(rf"{_starts('[2-9]', not_behind='0-9A-Za-z.+-')}[0-9]{{2}}[ .-]{_REST}{_NUMBER_ENDS}")
            ),
        ),
        _phone_number,
    ),
}
