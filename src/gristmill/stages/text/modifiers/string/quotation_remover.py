"""`QuotationRemover`: the quotation marks around a whole text."""

from dataclasses import dataclass

from gristmill.stages.text.modifiers.document_modifier import DocumentModifier


@dataclass
class QuotationRemover(DocumentModifier):
    """Remove the quotation marks of a text that begins and ends with one (").

    Not if its first line ends with a mark too: then the marks belong to the lines.
    """

    def modify_document(self, text: str) -> str:
        if not (text.startswith('"') and text.endswith('"')) or len(text.strip()) <= 2:
            return text
        first_line, newline, _ = text.partition("\n")
        return text if newline and first_line.endswith('"') else text[1:-1]
