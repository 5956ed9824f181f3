"""`UnicodeReformatter`: text that was decoded wrongly, repaired with ftfy.

ftfy is asked only about texts it might change. Its steps tell which texts it leaves alone: each of them acts on
certain characters (`_touched`), and the repair of encodings begins with a search for unlikely neighbours. The
expression for that search runs in RE2 over whole columns, a hundred times as fast as in Python. A test compares the
answers with ftfy's own on texts of all kinds.
"""

import re
import unicodedata
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.stages.text.modifiers.document_modifier import DocumentModifier
from gristmill.tasks.text_columns import match_rows

if TYPE_CHECKING:
    from ftfy import TextFixerConfig

_ENTITY = "&#?[0-9A-Za-z]{1,24};"
_CONTROLS = r"\x00-\x08\x0b\x0e-\x1f\x7f"
_SURROGATES = r"\ud800-\udfff"
_NOTHING = r"[^\s\S]"
# Bad only where a line begins with it; a search through the whole text does not see that.
_BAD_LINE_START = r"[ÃÂ][ ]"


@dataclass
class UnicodeReformatter(DocumentModifier):
    """Repair mojibake, HTML entities, surrogates, terminal escapes and control characters.

    The options are ftfy's (see ftfy.readthedocs.io); `config`, an `ftfy.TextFixerConfig`, replaces all of them.
    """

    config: object = None
    unescape_html: str | bool = "auto"
    remove_terminal_escapes: bool = True
    fix_encoding: bool = True
    restore_byte_a0: bool = True
    replace_lossy_sequences: bool = True
    decode_inconsistent_utf8: bool = True
    fix_c1_controls: bool = True
    fix_latin_ligatures: bool = False
    fix_character_width: bool = False
    uncurl_quotes: bool = False
    fix_line_breaks: bool = False
    fix_surrogates: bool = True
    remove_control_chars: bool = True
    normalization: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = None
    max_decode_length: int = 1000000
    explain: bool = True

    def __post_init__(self) -> None:
        if self.max_decode_length < 1:
            raise ConfigError(f"UnicodeReformatter: expected max_decode_length ≥ 1; got {self.max_decode_length!r}")
        if self.unescape_html not in ("auto", True, False):
            raise ConfigError(
                f"UnicodeReformatter: expected unescape_html 'auto', true or false; got {self.unescape_html!r}"
            )

    def find_candidates(self, texts: pa.ChunkedArray) -> NDArray[np.bool_]:
        return match_rows(texts, _touched_in_re2(self._config()))

    def modify_document(self, text: str) -> str:
        config = self._config()
        if not _may_change(text, config):
            return text
        import ftfy

        return ftfy.fix_text(text, config)

    def _config(self) -> "TextFixerConfig":
        import ftfy  # 25 ms, mostly for the table of HTML entities

        if self.config is not None:
            return cast("TextFixerConfig", self.config)
        options = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "config"}
        return ftfy.TextFixerConfig(**options)


def _may_change(text: str, config: "TextFixerConfig") -> bool:
    if _touched(config).search(text):
        return True
    if text.isascii():
        return False
    if config.normalization is not None and not unicodedata.is_normalized(config.normalization, text):
        return True
    from ftfy.badness import is_bad

    return config.fix_encoding and is_bad(text)


@cache
def _touched_in_re2(config: "TextFixerConfig") -> str:
    """A pattern of RE2 for everything the steps act on; it may match more, never less."""
    from ftfy.badness import BADNESS_RE

    touched = [_touched(config).pattern.replace(_SURROGATES, "")]  # which no column holds
    if config.normalization is not None:
        touched.append(r"[^\x00-\x7f]")
    if config.fix_encoding:
        touched.append(_without_layout(BADNESS_RE.pattern))
    return "|".join(touched)


def _without_layout(pattern: str) -> str:
    """Return a verbose expression without its white space and comments, matching no less in RE2 than it does in Python.

    RE2's classes are ASCII, so others are let in.
    """
    parts = re.findall(r"\\.|\[(?:\\.|[^\]])*\]|#[^\n]*|\s+|.", pattern)
    wider = {r"\s": r"(?:[\s\x1c-\x1f]|[^\x00-\x7f])", r"\w": r"(?:\w|[^\x00-\x7f])"}
    return "".join(wider.get(part, part) for part in parts if not part.isspace() and not part.startswith("#"))


@cache
def _touched(config: "TextFixerConfig") -> re.Pattern[str]:
    """The characters the steps act on, apart from normalization and unlikely neighbours."""
    from ftfy import chardata

    ligatures = "".join(map(chr, chardata.LIGATURES))
    wide = "".join(map(chr, chardata.WIDTH_MAP))
    classes = {
        _CONTROLS + "\u206a-\u206f\ufeff\ufff9-\ufffc": config.remove_control_chars,
        r"\x1b": config.remove_terminal_escapes,
        r"\x80-\x9f": config.fix_c1_controls or config.fix_encoding,
        _SURROGATES: config.fix_surrogates,
        "\\r\u2028\u2029\x85": config.fix_line_breaks,
        "\u02bc\u2018-\u201f": config.uncurl_quotes,
        re.escape(ligatures): config.fix_latin_ligatures,
        re.escape(wide): config.fix_character_width,
    }
    wanted = "".join(characters for characters, on in classes.items() if on)
    alternatives = [f"[{wanted}]"] if wanted else []
    alternatives += [_ENTITY] if config.unescape_html is not False else []
    alternatives += [_BAD_LINE_START] if config.fix_encoding else []
    return re.compile("|".join(alternatives) or _NOTHING)
