"""The names users type are where they expect them."""

import importlib

import pytest

NAMES = {
    "gristmill.pipeline": ["Pipeline"],
    "gristmill.stages.base": ["ProcessingStage", "CompositeStage", "get_stage_class"],
    "gristmill.stages.core": ["ProcessingStage", "CompositeStage", "get_stage_class"],
    "gristmill.stages.function_decorators": ["processing_stage"],
    "gristmill.stages.function_definitions": ["processing_stage"],
    "gristmill.stages.resources": ["Resources"],
    "gristmill.stages.file_partitioning": ["FilePartitioningStage"],
    "gristmill.tasks": ["Task", "DocumentBatch", "FileGroupTask", "EmptyTask"],
    "gristmill.backends.base": ["BaseExecutor", "NodeInfo", "WorkerMetadata"],
    "gristmill.backends.local": ["LocalExecutor"],
    "gristmill.runs.books": ["RunResult"],
    "gristmill.config.run": ["create_pipeline_from_yaml", "create_executor_from_yaml"],
    "gristmill.stages.text.io": ["JsonlReader", "ParquetReader", "JsonlWriter", "ParquetWriter"],
    "gristmill.stages.text.io.reader": ["JsonlReader", "ParquetReader", "CsvReader", "TextReader"],
    "gristmill.stages.text.io.writer": ["JsonlWriter", "ParquetWriter"],
    "gristmill.stages.text.filters": ["Score", "Filter", "ScoreFilter", "DocumentFilter"],
    "gristmill.stages.text.filters.heuristic": ["WordCountFilter", "NonAlphaNumericFilter", "BulletsFilter"],
    "gristmill.stages.text.filters.heuristic.code": [
        *("PythonCommentToCodeFilter", "GeneralCommentToCodeFilter", "NumberOfLinesOfCodeFilter", "XMLHeaderFilter"),
        *("TokenizerFertilityFilter", "AlphaFilter", "HTMLBoilerplateFilter", "PerExtensionFilter"),
    ],
    "gristmill.stages.text.filters.fasttext": ["FastTextLangId", "FastTextQualityFilter"],
    "gristmill.stages.text.filters.token": ["TokenCountFilter"],
    "gristmill.stages.text.filters.histogram": ["HistogramFilter"],
    "gristmill.stages.text.modifiers": ["Modify", "DocumentModifier", "UnicodeReformatter", "NewlineNormalizer"],
    "gristmill.stages.text.modifiers.string": [
        *("BoilerPlateStringModifier", "LineRemover", "MarkdownRemover", "NewlineNormalizer", "QuotationRemover"),
        *("Slicer", "UrlRemover"),
    ],
    "gristmill.stages.text.modifiers.unicode": ["UnicodeReformatter"],
    "gristmill.stages.text.modifiers.fasttext": ["FastTextLabelModifier"],
    "gristmill.stages.text.modifiers.pii": ["PiiModifier"],
    "gristmill.metrics.start_prometheus_grafana": ["start_prometheus_grafana"],
    "gristmill.pipeline.workflow": ["WorkflowBase", "WorkflowRunResult"],
    "gristmill.stages.synthetic.qa_multilingual_synthetic": ["QAMultilingualSyntheticStage", "LanguageFilter"],
    "gristmill.stages.synthetic.nemotron_cc.base": ["BaseSyntheticStage"],
    "gristmill.stages.synthetic.nemotron_cc.nemotron_cc": [
        *("WikipediaParaphrasingStage", "DiverseQAStage", "DistillStage", "ExtractKnowledgeStage"),
        *("KnowledgeListStage", "DiverseQAPostProcessingStage", "KnowledgeListPostProcessingStage"),
    ],
    "gristmill.stages.text.experimental.translation": ["TranslationStage"],
    "gristmill.stages.deduplication.exact.workflow": ["ExactDeduplicationWorkflow"],
    "gristmill.stages.deduplication.fuzzy.workflow": ["FuzzyDeduplicationWorkflow"],
    "gristmill.stages.deduplication.semantic": ["SemanticDeduplicationWorkflow", "RankingStrategy"],
    "gristmill.stages.text.deduplication.removal_workflow": ["TextDuplicatesRemovalWorkflow"],
    "gristmill.stages.text.deduplication.semantic": ["TextSemanticDeduplicationWorkflow"],
    "gristmill.stages.text.embedders": ["EmbeddingCreatorStage"],
    "gristmill.stages.text.embedders.vllm": ["VLLMEmbeddingModelStage"],
    "gristmill.stages.deduplication.id_generator": [
        *("create_id_generator_actor", "kill_id_generator_actor", "write_id_generator_to_disk"),
        "CURATOR_DEDUP_ID_STR",
    ],
    "gristmill.stages.text.modules": ["AddId", "DocumentSplitter", "DocumentJoiner"],
    "gristmill.stages.text.filters.heuristic.repetition": ["RepeatedLinesFilter", "RepeatedParagraphsFilter"],
}


@pytest.mark.parametrize(("path", "name"), [(path, name) for path, names in NAMES.items() for name in names])
def test_a_known_name_is_at_its_known_path(path, name):
    assert hasattr(importlib.import_module(path), name)


@pytest.mark.parametrize("alias", ["gristmill.stages.core", "gristmill.stages.base"])
def test_two_paths_of_a_name_lead_to_one_class(alias):
    from gristmill.stages.base import ProcessingStage

    assert importlib.import_module(alias).ProcessingStage is ProcessingStage
