"""gristmill streams raw data through curation stages until it is fit to train on.

    from gristmill import JsonlReader, JsonlWriter, Pipeline, ScoreFilter, WordCountFilter

Importing this package starts nothing, sets no environment and loads nothing: each name below is fetched from its module
when it is first used. Every name has a home where there is more of its kind: filters in
`gristmill.stages.text.filters.heuristic`, stages in `gristmill.stages`, executors in `gristmill.backends`.
"""

from typing import TYPE_CHECKING

from gristmill.lazy_names import fetched_from

if TYPE_CHECKING:
    from gristmill.backends.local import LocalExecutor
    from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
    from gristmill.config.run import create_pipeline_from_yaml
    from gristmill.core.client import RayClient
    from gristmill.errors import ConfigError, GristmillError
    from gristmill.pipeline import Pipeline
    from gristmill.runs.books import RunResult
    from gristmill.stages.base import CompositeStage, ProcessingStage
    from gristmill.stages.deduplication import ExactDeduplication, FuzzyDeduplication
    from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
    from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow
    from gristmill.stages.function_decorators import processing_stage
    from gristmill.stages.resources import Resources
    from gristmill.stages.text.deduplication.removal_workflow import TextDuplicatesRemovalWorkflow
    from gristmill.stages.text.deduplication.semantic import TextSemanticDeduplicationWorkflow
    from gristmill.stages.text.filters import DocumentFilter, Filter, Score, ScoreFilter
    from gristmill.stages.text.filters.fasttext import FastTextLangId
    from gristmill.stages.text.filters.heuristic import WordCountFilter
    from gristmill.stages.text.io import (
        CsvReader,
        JsonlReader,
        JsonlWriter,
        ParquetReader,
        ParquetWriter,
        TextReader,
    )
    from gristmill.stages.text.modifiers import DocumentModifier, Modify, PiiModifier, UnicodeReformatter
    from gristmill.stages.text.modules import AddId
    from gristmill.stages.text.rules import ApplyRules
    from gristmill.tasks import DocumentBatch, EmptyTask, FileGroupTask, Task

__version__ = "0.1.0"

__all__ = [
    "AddId",
    "ApplyRules",
    "CompositeStage",
    "ConfigError",
    "CsvReader",
    "DocumentBatch",
    "DocumentFilter",
    "DocumentModifier",
    "EmptyTask",
    "ExactDeduplication",
    "ExactDeduplicationWorkflow",
    "FastTextLangId",
    "FileGroupTask",
    "Filter",
    "FuzzyDeduplication",
    "FuzzyDeduplicationWorkflow",
    "GristmillError",
    "JsonlReader",
    "JsonlWriter",
    "LocalExecutor",
    "Modify",
    "ParquetReader",
    "ParquetWriter",
    "PiiModifier",
    "Pipeline",
    "ProcessingStage",
    "RayActorPoolExecutor",
    "RayClient",
    "Resources",
    "RunResult",
    "Score",
    "ScoreFilter",
    "Task",
    "TextDuplicatesRemovalWorkflow",
    "TextReader",
    "TextSemanticDeduplicationWorkflow",
    "UnicodeReformatter",
    "WordCountFilter",
    "create_pipeline_from_yaml",
    "processing_stage",
]

# Where each name lives: the imports above say the same to editors and type checkers, and a test compares the two.
_HOMES = {
    "backends.local": ("LocalExecutor",),
    "backends.ray_actor_pool": ("RayActorPoolExecutor",),
    "config.run": ("create_pipeline_from_yaml",),
    "core.client": ("RayClient",),
    "errors": ("ConfigError", "GristmillError"),
    "pipeline": ("Pipeline",),
    "runs.books": ("RunResult",),
    "stages.base": ("CompositeStage", "ProcessingStage"),
    "stages.deduplication": ("ExactDeduplication", "FuzzyDeduplication"),
    "stages.deduplication.exact.workflow": ("ExactDeduplicationWorkflow",),
    "stages.deduplication.fuzzy.workflow": ("FuzzyDeduplicationWorkflow",),
    "stages.function_decorators": ("processing_stage",),
    "stages.resources": ("Resources",),
    "stages.text.deduplication.removal_workflow": ("TextDuplicatesRemovalWorkflow",),
    "stages.text.deduplication.semantic": ("TextSemanticDeduplicationWorkflow",),
    "stages.text.filters": ("DocumentFilter", "Filter", "Score", "ScoreFilter"),
    "stages.text.filters.fasttext": ("FastTextLangId",),
    "stages.text.filters.heuristic": ("WordCountFilter",),
    "stages.text.io": ("CsvReader", "JsonlReader", "JsonlWriter", "ParquetReader", "ParquetWriter", "TextReader"),
    "stages.text.modifiers": ("DocumentModifier", "Modify", "PiiModifier", "UnicodeReformatter"),
    "stages.text.modules": ("AddId",),
    "stages.text.rules": ("ApplyRules",),
    "tasks": ("DocumentBatch", "EmptyTask", "FileGroupTask", "Task"),
}

if not TYPE_CHECKING:
    __getattr__ = fetched_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
