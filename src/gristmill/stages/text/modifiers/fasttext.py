"""`FastTextLabelModifier`: documents as lines of training data for fastText."""

from dataclasses import dataclass

from gristmill.stages.text.modifiers.document_modifier import DocumentModifier

LABEL_MARK = "__label__"


def one_line(text: str) -> str:
    """Return a text as fastText reads one: no newline, and nothing that it would take for a label."""
    return text.replace("\n", " ").replace(LABEL_MARK, " ")


@dataclass
class FastTextLabelModifier(DocumentModifier):
    """Put a label, such as "__label__hq", before the text, which becomes one line."""

    label: str

    def modify_document(self, text: str) -> str:
        return f"{self.label} {one_line(text)}"
