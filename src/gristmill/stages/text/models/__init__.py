"""Models on texts, in two stages: tokens on CPUs, then the model. Classifiers and embedders are made of them."""

from gristmill.stages.text.models.model import ModelStage
from gristmill.stages.text.models.tokenizer import TokenizerStage

__all__ = ["ModelStage", "TokenizerStage"]
