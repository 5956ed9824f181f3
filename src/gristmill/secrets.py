"""What must not be written down: keys, tokens and passwords in options, URLs and the messages of libraries.

A run's directory is published with its output and read by others, and error texts are pasted into issues. So secrets
are taken out where texts and configurations are made, not where they are shown: there are few places of the first kind.
Nothing from which a secret could be guessed is kept either, no hash and no length.
"""

import os
import re
from collections.abc import Mapping
from types import FunctionType, ModuleType

HIDDEN = "***"
DEEP, MANY = 4, 100  # levels of objects and things in one that are searched for secrets
SHORTEST = 6  # characters of a secret that is looked for in texts: shorter ones would be found in ordinary words

# As names of parameters and keys. `token` ends many names that are not secret (pad_token), so prefixes are listed.
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:password|passwd|passphrase|secret|secrets|credential|credentials|authorization|connection_string|"
    r"api_?key|access_?key|secret_?key|account_?key|private_?key|storage_options|"
    r"(?:hf|api|auth|access|bearer|refresh|sas|security|session)_token)(?:$|_(?:id|value)$)|^token$",
    re.IGNORECASE,
)
# The others are compiled when first wanted: every process loads this module, and few have anything to hide.
# Inside `storage_options` and in the query of a URL fewer names are innocent.
_NOT_INNOCENT = r"(?i)key|secret|token|passw|pwd|credential|auth|signature|cookie|connection|^sas|^sig$"
_SIGNED = r"(?i)[?&](?:x-amz-|x-goog-)?(?:sig|signature)="
# Schemes are short. Without a limit each letter of a long word is looked at as the first of one: 100 KB took a minute.
_URL = r"[A-Za-z][A-Za-z0-9+.-]{1,40}://[^\s'\"<>]+"
# Up to the last @ of the host; or, as keys of S3 may contain a slash, up to the first after "name:", if no port is.
_USER = r"^([A-Za-z][A-Za-z0-9+.-]+://)([^/?#]*|[^/?#:@]+:(?!\d{1,5}/)[^?#]*?)@"
_QUERY_VALUE = r"([?&;])([^=&;#]+)=([^&;#]*)"
_BEARER = r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}"

# Values that were given as secrets to this process. A library's message may repeat one, and what cannot be
# recognised by its form is recognised by having been seen.
_seen: set[str] = set()


def is_secret(name: str) -> bool:
    """Whether a parameter or key of this name holds what must not be written down.

    >>> is_secret("hf_token"), is_secret("max_tokens"), is_secret("storage_options")
    (True, False, True)
    """
    return _SECRET_NAME.search(name) is not None


def remember(options: Mapping[str, object]) -> None:
    """Note the secrets among the options of a store, so that no text repeats them."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            remember({f"{name}.{key}" if re.search(_NOT_INNOCENT, name) else str(key): v for key, v in value.items()})
        elif re.search(_NOT_INNOCENT, name):
            _note(value)


def remember_those_of(holder: object, depth: int = 0) -> None:
    """Note the secrets among the attributes of an object, such as a stage, and of the objects it holds."""
    named = holder if isinstance(holder, Mapping) else getattr(holder, "__dict__", {})
    if isinstance(holder, list | tuple):
        named = {str(number): item for number, item in enumerate(holder[:MANY])}
    if isinstance(holder, type | ModuleType | FunctionType) or depth > DEEP or len(named) > MANY:
        return
    for name, value in named.items():
        if not is_secret(str(name)):
            remember_those_of(value, depth + 1)
        elif isinstance(value, Mapping):
            remember(value)
        else:
            _note(value)


def _note(value: object) -> None:
    if isinstance(value, str) and len(value) >= SHORTEST:
        _seen.add(value)


def masked(secret: bytes) -> bytes:
    """Return a secret for a pickle that goes to another process, so that nobody reads it there by chance.

    That is not encryption: whoever looks for it can undo it, as `unmasked` does.
    """
    pad = os.urandom(len(secret))
    return pad + bytes(a ^ b for a, b in zip(pad, secret, strict=True))


def unmasked(masked: bytes) -> bytes:
    """Return what was masked."""
    half = len(masked) // 2
    return bytes(a ^ b for a, b in zip(masked[:half], masked[half:], strict=True))


def redacted(value: object) -> object:
    """Return a value as it may be shown: of mappings, what has the name of a secret is hidden."""
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if re.search(_NOT_INNOCENT, str(key)) and not isinstance(inner, Mapping) else redacted(inner)
            for key, inner in value.items()
        }
    return [redacted(inner) for inner in value] if isinstance(value, list) else value


def without_secrets(text: str) -> str:
    """Return a text without the passwords and signatures in its URLs, and without secrets that were seen.

    >>> without_secrets("https://me:pw@host/a?x=1&token=abc")
    'https://***@host/a?x=1&token=***'
    """
    text = without_url_secrets(text)
    if "Bearer " in text or "Basic " in text:
        text = re.sub(_BEARER, rf"\1 {HIDDEN}", text)
    for secret in _seen:
        text = text.replace(secret, HIDDEN)
    return text


def without_url_secrets(text: str) -> str:
    """Return a text without the passwords and signatures in its URLs, and otherwise as it is.

    For names, digests and sources: they must not depend on which keys this process happens to have seen. A key such as
    "testing" may well be part of a path.
    """
    return re.sub(_URL, lambda match: _url_without_secrets(match[0]), text) if "://" in text else text


def has_secrets(url: str) -> bool:
    """Whether a URL contains a password, a key or a signature."""
    return without_url_secrets(url) != url


def _url_without_secrets(url: str) -> str:
    user = re.match(_USER, url)
    # The name alone is part of the address for some (abfs://container@account), and a token for others.
    if user is not None and (":" in user[2] or user[1].lower() in ("http://", "https://")):
        url = f"{user[1]}{HIDDEN}@{url[user.end() :]}"
    if re.search(_SIGNED, url):  # what is signed is signed as a whole, and all of it is new tomorrow
        return f"{url.partition('?')[0]}?{HIDDEN}"
    return re.sub(_QUERY_VALUE, _hide_value, url) if "?" in url else url


def _hide_value(match: "re.Match[str]") -> str:
    separator, name, value = match.groups()
    return f"{separator}{name}={HIDDEN if value and re.search(_NOT_INNOCENT, name) else value}"
