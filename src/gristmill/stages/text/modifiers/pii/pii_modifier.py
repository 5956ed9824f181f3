"""`PiiModifier`: takes personal data out of texts.

It needs no model: it finds what has a form (addresses, numbers, keys), not names of people and places.
"""

import bisect
import hashlib
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError, nearest
from gristmill.stages.text.modifiers.document_modifier import DocumentModifier
from gristmill.stages.text.modifiers.pii.entities import ENTITIES
from gristmill.tasks.text_columns import match_rows

Action = Literal["redact", "replace", "mask", "hash"]
_ACTIONS = ("redact", "replace", "mask", "hash")
_HASHES = ("sha256", "sha512")


@dataclass
class PiiModifier(DocumentModifier):
    """Find e-mail and IP addresses, phone, card and account numbers, US social security numbers and access keys.

    Cards and accounts count only if their check digits are right. `anonymize_action` says what becomes of a finding:

    `replace`   the name of its kind, as in <EMAIL_ADDRESS>, or `new_value`
    `redact`    nothing
    `mask`      `masking_char` for each character, or for the first `chars_to_mask` (with `from_end`, the last)
    `hash`      the hexadecimal digest of `salt` and the finding, so that equal ones can still be recognized

    `supported_entities` chooses kinds; None is all. The forms are the same in every `language`.
    """

    language: str = "en"
    supported_entities: list[str] | None = None
    anonymize_action: Action = "replace"
    _: KW_ONLY
    new_value: str | None = None
    masking_char: str = "*"
    chars_to_mask: int | None = None
    from_end: bool = False
    hash_type: Literal["sha256", "sha512"] = "sha256"
    salt: str = ""

    def __post_init__(self) -> None:
        for entity in self.supported_entities or ():
            if entity not in ENTITIES:
                known = ", ".join(ENTITIES)
                raise ConfigError(
                    f"PiiModifier: expected entities of {known}; got {entity!r}{nearest(entity, ENTITIES)}"
                )
        for option, known_values in (("anonymize_action", _ACTIONS), ("hash_type", _HASHES)):
            value = getattr(self, option)
            if value not in known_values:
                hint = nearest(str(value), known_values)
                raise ConfigError(f"PiiModifier: expected {option} to be one of {known_values}; got {value!r}{hint}")

    def find_candidates(self, texts: pa.ChunkedArray) -> NDArray[np.bool_]:
        return match_rows(texts, "|".join(ENTITIES[entity].hint for entity in self._entities()))

    def modify_document(self, text: str) -> str:
        pieces, position = [], 0
        for start, end, entity in sorted(self._findings(text)):
            pieces += [text[position:start], self._replacement(text[start:end], entity)]
            position = end
        return "".join([*pieces, text[position:]]) if pieces else text

    def _entities(self) -> list[str]:
        wanted = ENTITIES if self.supported_entities is None else self.supported_entities
        return [entity for entity in ENTITIES if entity in wanted]

    def _findings(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield where each finding begins and ends, and its kind; of two that overlap, the kind that comes first."""
        taken: list[tuple[int, int]] = []
        for name in self._entities():
            entity = ENTITIES[name]
            for needs, pattern in entity.searches:
                if needs not in text:
                    continue
                own = [(m.start(), m.start() + entity.real_chars(m[0])) for m in pattern.finditer(text)]
                own = [(start, end) for start, end in own if end > start and not _overlaps(taken, start, end)]
                yield from ((start, end, name) for start, end in own)
                taken = sorted(taken + own)

    def _replacement(self, found: str, entity: str) -> str:
        if self.anonymize_action == "redact":
            return ""
        if self.anonymize_action == "replace":
            return f"<{entity}>" if self.new_value is None else self.new_value
        if self.anonymize_action == "hash":
            return hashlib.new(self.hash_type, (self.salt + found).encode()).hexdigest()
        number = len(found) if self.chars_to_mask is None else min(self.chars_to_mask, len(found))
        masked = self.masking_char * number
        return found[: len(found) - number] + masked if self.from_end else masked + found[number:]


def _overlaps(taken: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether a span overlaps one of those taken, which are in order and disjoint."""
    after = bisect.bisect_left(taken, (end, end))
    return after > 0 and taken[after - 1][1] > start
