"""Classifiers: a tokenizer, a model and perhaps a filter as one stage, under the names users know."""

from gristmill.stages.text.classifiers.aegis import AegisClassifier, InstructionDataGuardClassifier
from gristmill.stages.text.classifiers.base import DistributedDataClassifier
from gristmill.stages.text.classifiers.deberta import (
    ContentTypeClassifier,
    DomainClassifier,
    MultilingualDomainClassifier,
    QualityClassifier,
)
from gristmill.stages.text.classifiers.fineweb_edu import (
    FineWebEduClassifier,
    FineWebMixtralEduClassifier,
    FineWebNemotronEduClassifier,
)
from gristmill.stages.text.classifiers.prompt_task_complexity import PromptTaskComplexityClassifier

__all__ = [
    "AegisClassifier",
    "ContentTypeClassifier",
    "DistributedDataClassifier",
    "DomainClassifier",
    "FineWebEduClassifier",
    "FineWebMixtralEduClassifier",
    "FineWebNemotronEduClassifier",
    "InstructionDataGuardClassifier",
    "MultilingualDomainClassifier",
    "PromptTaskComplexityClassifier",
    "QualityClassifier",
]
