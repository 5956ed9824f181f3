"""`BoilerPlateStringModifier`: notices about cookies and privacy, after C4 (Raffel et al., 2020, section 2.2)."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.text.judging.tables import LOREM_IPSUM_PHRASE, POLICY_PHRASES
from gristmill.stages.text.modifiers.document_modifier import DocumentModifier
from gristmill.tasks.text_columns import match_rows

# RE2 folds at least what str.lower folds, so a text this does not match holds none of the phrases.
_MAYBE = r"(?i)cookie|privacy|terms of use|lorem ipsum"


@dataclass
class BoilerPlateStringModifier(DocumentModifier):
    """Cut paragraphs with a policy phrase off the top and the bottom of a text.

    A text with "lorem ipsum" becomes empty, and so does any with a policy phrase if `remove_if_at_top_or_bottom` is
    False. A text whose policy paragraphs are elsewhere too, or are all it has, stays as it is: it is about them.
    """

    remove_if_at_top_or_bottom: bool = True

    def find_candidates(self, texts: pa.ChunkedArray) -> NDArray[np.bool_]:
        return match_rows(texts, _MAYBE)

    def modify_document(self, text: str) -> str:
        lowered = text.lower()
        if LOREM_IPSUM_PHRASE in lowered:
            return ""
        if not any(phrase in lowered for phrase in POLICY_PHRASES):
            return text
        paragraphs = text.split("\n\n")
        is_policy = [any(phrase in paragraph.lower() for phrase in POLICY_PHRASES) for paragraph in paragraphs]
        if not any(is_policy):  # the phrase went over a paragraph's end
            return text
        if not self.remove_if_at_top_or_bottom:
            return ""
        if all(is_policy):
            return text
        top, bottom = is_policy.index(False), len(is_policy) - is_policy[::-1].index(False)
        return text if any(is_policy[top:bottom]) else "\n\n".join(paragraphs[top:bottom])
