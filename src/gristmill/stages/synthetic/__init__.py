"""Stages that ask a language model: scores, rewritten texts, questions and answers."""

from gristmill.stages.synthetic.llm_score import LLMScoreStage
from gristmill.stages.synthetic.llm_stage import LLMStage
from gristmill.stages.synthetic.prompt import Prompt
from gristmill.stages.synthetic.qa_multilingual_synthetic import LanguageFilter, QAMultilingualSyntheticStage
from gristmill.stages.synthetic.rewrite import RewriteStage, VariantsToDocuments

__all__ = [
    "LLMScoreStage",
    "LLMStage",
    "LanguageFilter",
    "Prompt",
    "QAMultilingualSyntheticStage",
    "RewriteStage",
    "VariantsToDocuments",
]
