"""`Slicer`: a part of every text."""

from dataclasses import dataclass

from gristmill.stages.text.modifiers.document_modifier import DocumentModifier


@dataclass
class Slicer(DocumentModifier):
    """Keep what is between `left` and `right`: positions, or strings to look for.

    `left` is looked for from the beginning and `right` from the end; a text that lacks one becomes empty. The strings
    themselves belong to the result unless `include_left` or `include_right` is False.
    """

    left: int | str | None = 0
    right: int | str | None = None
    include_left: bool = True
    include_right: bool = True
    strip: bool = True

    def modify_document(self, text: str) -> str:
        start, stop = self.left or 0, len(text) if self.right is None else self.right
        if isinstance(start, str):
            found = text.find(start)
            if found < 0:
                return ""
            start = found if self.include_left else found + len(start)
        if isinstance(stop, str):
            found = text.rfind(stop)
            if found < 0:
                return ""
            stop = found + len(stop) if self.include_right else found
        piece = text[start:stop]
        return piece.strip() if self.strip else piece
