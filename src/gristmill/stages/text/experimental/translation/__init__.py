"""Translation of documents, piece by piece, with marks for its quality."""

from gristmill.stages.text.experimental.translation.translation_stage import TranslationStage

__all__ = ["TranslationStage"]
