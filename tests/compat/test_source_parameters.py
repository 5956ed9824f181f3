"""Sources have the paths, parameters and defaults that users know. What is ours beyond them is keyword-only."""

import importlib
import inspect

import pytest

from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download import TransferOptions

DOWNLOAD = "gristmill.stages.text.download"
NEEDED = inspect.Parameter.empty

# Module, name, and the parameters in their order with their defaults.
SIGNATURES = [
    (f"{DOWNLOAD}.base.download", "DocumentDownloader", {"download_dir": NEEDED, "verbose": False}),
    (f"{DOWNLOAD}.base.url_generation", "URLGenerationStage", {"url_generator": NEEDED, "limit": None}),
    (f"{DOWNLOAD}.base.download", "DocumentDownloadStage", {"downloader": NEEDED}),
    (
        f"{DOWNLOAD}.base.iterator",
        "DocumentIterateExtractStage",
        {"iterator": NEEDED, "extractor": None, "record_limit": None, "add_filename_column": True,
         "max_calls_per_worker": None},
    ),
    (
        DOWNLOAD,
        "DocumentDownloadExtractStage",
        {"url_generator": NEEDED, "downloader": NEEDED, "iterator": NEEDED, "extractor": None, "url_limit": None,
         "record_limit": None, "add_filename_column": True, "extractor_max_calls_per_worker": None},
    ),
    (
        DOWNLOAD,
        "CommonCrawlDownloadExtractStage",
        {"start_snapshot": NEEDED, "end_snapshot": NEEDED, "download_dir": NEEDED, "crawl_type": "main",
         "html_extraction": None, "html_extraction_kwargs": None, "stop_lists": None, "use_aws_to_download": False,
         "verbose": False, "url_limit": None, "record_limit": None, "add_filename_column": True,
         "extractor_max_calls_per_worker": None},
    ),
    (
        f"{DOWNLOAD}.common_crawl.download",
        "CommonCrawlWARCDownloader",
        {"download_dir": NEEDED, "use_aws_to_download": False, "verbose": False},
    ),
    (
        f"{DOWNLOAD}.common_crawl.download",
        "CommonCrawlWARCReader",
        {"warc_filename_col": "warc_filename", "warc_record_offset_col": "warc_record_offset",
         "warc_record_length_col": "warc_record_length", "binary_content_col": "binary_content", "drop_failed": True,
         "max_workers": 16, "timeout": 30, "max_retries": 3, "use_s3": None, "s3_bucket": None,
         "s3_key_prefix": None},
    ),
    (f"{DOWNLOAD}.common_crawl.warc_iterator", "CommonCrawlWarcIterator", {"storage_options": None}),
    (
        f"{DOWNLOAD}.common_crawl.extract",
        "CommonCrawlHTMLExtractor",
        {"algorithm": None, "algorithm_kwargs": None, "stop_lists": None},
    ),
    (
        f"{DOWNLOAD}.common_crawl.url_generation",
        "MainCommonCrawlUrlGenerator",
        {"start_snapshot_str": NEEDED, "end_snapshot_str": NEEDED, "data_prefix": "https://data.commoncrawl.org",
         "limit": None, "index_prefix": "https://index.commoncrawl.org"},
    ),
    (
        f"{DOWNLOAD}.common_crawl.url_generation",
        "NewsCommonCrawlUrlGenerator",
        {"start_snapshot_str": NEEDED, "end_snapshot_str": NEEDED, "data_prefix": "https://data.commoncrawl.org",
         "limit": None},
    ),
    (
        f"{DOWNLOAD}.html_extractors",
        "JusTextExtractor",
        {"length_low": 70, "length_high": 200, "stopwords_low": 0.30, "stopwords_high": 0.32, "max_link_density": 0.2,
         "max_heading_distance": 200, "no_headings": False, "is_boilerplate": None},
    ),
    (
        f"{DOWNLOAD}.html_extractors",
        "ResiliparseExtractor",
        {"required_stopword_density": 0.32, "main_content": True, "alt_texts": False},
    ),
    (
        f"{DOWNLOAD}.html_extractors",
        "TrafilaturaExtractor",
        {"required_stopword_density": 0.32, "min_extracted_size": 250, "min_extracted_comm_size": 1,
         "min_output_size": 1, "min_output_comm_size": 1, "max_tree_size": None, "min_duplcheck_size": 100,
         "max_repetitions": 2},
    ),
    (
        DOWNLOAD,
        "WikipediaDownloadExtractStage",
        {"language": "en", "download_dir": "./wikipedia_downloads", "dump_date": None,
         "wikidumps_index_prefix": "https://dumps.wikimedia.org", "verbose": False, "url_limit": None,
         "record_limit": None, "add_filename_column": True, "log_frequency": 1000},
    ),
    (
        DOWNLOAD,
        "ArxivDownloadExtractStage",
        {"download_dir": "./arxiv_downloads", "url_limit": None, "record_limit": None, "add_filename_column": True,
         "log_frequency": 1000, "verbose": False},
    ),
    (
        "gristmill.stages.math.download.extract",
        "MathContentExtractor",
        {"binary_column": "binary_content", "url_column": "url", "mime_type_column": "mime_type",
         "lynx_timeout_sec": 20},
    ),
    (
        "gristmill.stages.math.download.extract",
        "MathExtractStage",
        {"extractor": NEEDED, "add_filename_column": False},
    ),
    (
        "gristmill.stages.math.modifiers",
        "TokenSplitterStage",
        {"model_name": NEEDED, "max_length_tokens": 8000, "separator": "\n\n", "text_field": "text",
         "chunk_id_field": "chunk_id", "n_tokens_field": "n_tokens"},
    ),
    (
        "gristmill.stages.math.modifiers",
        "ChunkMergeStage",
        {"text_field": "cleaned_text", "raw_text_field": "text", "chunk_id_field": "chunk_id",
         "groupby_columns": ["url"], "no_content_markers": ["NO USEFUL CONTENT", '"NO USEFUL CONTENT"'],
         "sum_columns": ["num_generated_tokens", "num_input_tokens"], "max_text_length": 900_000, "separator": "\n"},
    ),
    (
        "gristmill.stages.text.io.reader",
        "LanceReader",
        {"path": NEEDED, "fragments_per_partition": 32, "fields": None, "read_kwargs": None,
         "include_lance_metadata": True, "fragment_ids": None, "task_type": "document"},
    ),
    (
        "gristmill.stages.text.io.writer",
        "LanceWriter",
        {"path": NEEDED, "commit_path": NEEDED, "schema": None, "write_kwargs": {}, "fields": None,
         "name": "lance_writer", "mode": "create"},
    ),
    (
        "gristmill.stages.text.io.writer",
        "commit_lance_checkpoint",
        {"dataset_path": NEEDED, "checkpoint_path": NEEDED},
    ),
    (
        "gristmill.utils.merge_file_prefixes",
        "merge_file_prefixes",
        {"input_dir": NEEDED, "output_prefix": NEEDED},
    ),
]  # fmt: skip

MEGATRON = {
    "model_identifier": NEEDED, "cache_dir": None, "hf_token": None, "text_field": "text",
    "tokenization_batch_size": 1000, "append_eod": False, "transformers_init_kwargs": {},
}  # fmt: skip
READ = {"file_paths": NEEDED, "blocksize": None}
RECORDS = {"record_limit": None, "add_filename_column": True}
DATA = "https://data.commoncrawl.org"
SHARES = {"max_scanned_share": 0.5, "max_garbled_share": 0.2}
# What is only here: the parameters in their order, and those that have to be named.
OURS = [
    (
        DOWNLOAD,
        "TransferOptions",
        {},
        {"max_connections": 16, "max_rate": None, "contact": None, "mirrors": (), "max_disk": None, "keep_files": True,
         "max_retries": 8, "timeout": 30},
    ),
    (
        f"{DOWNLOAD}.html_extractors",
        "CascadeExtractor",
        {"first": None, "then": None, "short_line_share": 0.15},
        {},
    ),
    (
        DOWNLOAD,
        "CommonCrawlIndexReader",
        {"crawls": NEEDED, "where": None, "columns": None, "path": None},
        {"urls": None, "subset": "warc", "data_prefix": DATA, "transfer": TransferOptions()},
    ),
    (
        DOWNLOAD,
        "CommonCrawlUrlLookup",
        {"urls": NEEDED, "crawls": NEEDED},
        {"data_prefix": DATA, "transfer": TransferOptions()},
    ),
    (
        DOWNLOAD,
        "WarcReader",
        READ | {"kind": "warc"},
        {"extractor": None, "details": False, "record_limit": None, "add_filename_column": False, "read_kwargs": None},
    ),
    (
        DOWNLOAD,
        "WikipediaDumpReader",
        READ | {"language": None} | RECORDS,
        {"parser": "scanner", "math": "keep", "tables": "drop", "extra": (), "limits": IngestLimits()},
    ),
    (DOWNLOAD, "ArxivArchiveReader", READ | RECORDS, {"compat": False, "limits": IngestLimits()}),
    (
        "gristmill.stages.text.pdf",
        "PdfReader",
        READ | SHARES | {"add_filename_column": True},
        {"limits": IngestLimits()},
    ),
    (
        "gristmill.stages.text.pdf",
        "PdfExtractStage",
        {"binary_column": "binary_content"} | SHARES,
        {"text_column": "text", "truncated_column": None, "limits": IngestLimits()},
    ),
    (
        "gristmill.stages.text.io.reader",
        "HuggingFaceReader",
        {"dataset": NEEDED, "subset": None, "split": "train", "revision": None, "fields": None},
        {"blocksize": None, "files_per_partition": None},
    ),
    (
        "gristmill.stages.text.io.reader",
        "WebDatasetReader",
        {"file_paths": NEEDED, "files_per_partition": None, "blocksize": None, "fields": None, "read_kwargs": None},
        {"max_document_bytes": None},
    ),
    (
        "gristmill.stages.text.io.writer",
        "WebDatasetWriter",
        {"path": NEEDED, "file_extension": "tar", "write_kwargs": {}, "fields": None},
        {"samples_per_shard": 10_000, "text_field": "text", "key_field": None},
    ),
]  # fmt: skip
# What was added to what others have: by keyword, so that nothing they will add is in its place.
ADDED = [
    (DOWNLOAD, "CommonCrawlDownloadExtractStage", {"kind": "warc", "transfer": TransferOptions()}),
    (DOWNLOAD, "WikipediaDownloadExtractStage", {"parser": "scanner", "math": "keep", "tables": "drop"}),
    (DOWNLOAD, "ArxivDownloadExtractStage", {"requester_pays": False, "compat": False}),
    (DOWNLOAD, "CommonCrawlWARCReader", {"data_prefix": "https://data.commoncrawl.org/", "contact": None}),
    (f"{DOWNLOAD}.common_crawl.download", "CommonCrawlWARCDownloader", {"transfer": TransferOptions()}),
    (f"{DOWNLOAD}.common_crawl.warc_iterator", "CommonCrawlWarcIterator", {"details": False}),
    (
        f"{DOWNLOAD}.common_crawl.extract",
        "CommonCrawlHTMLExtractor",
        {"math": True, "code": True, "limits": IngestLimits(), "fallback": None, "drop_truncated": False, "extra": ()},
    ),
    ("gristmill.stages.math.download.extract", "MathContentExtractor", {"output_format": "text"}),
    (
        "gristmill.stages.text.io.writer",
        "commit_lance_checkpoint",
        {"dataset_storage_options": None, "checkpoint_storage_options": None},
    ),
]  # fmt: skip


def found(module, name):
    return getattr(importlib.import_module(module), name)


def default_of(parameter, cls):
    """The default, also where a dataclass makes a new one each time."""
    if parameter.default is not NEEDED and "factory" in repr(parameter.default):
        return cls.__dataclass_fields__[parameter.name].default_factory()
    return parameter.default


def of_kind(cls, kind):
    """The parameters of a kind, in their order, with their defaults."""
    parameters = [each for each in inspect.signature(cls).parameters.values() if each.kind is kind]
    return {each.name: default_of(each, cls) for each in parameters}


@pytest.mark.parametrize(("module", "name", "expected"), SIGNATURES, ids=[name for _, name, _ in SIGNATURES])
def test_parameters_and_defaults_are_those_users_know(module, name, expected):
    parameters = of_kind(found(module, name), inspect.Parameter.POSITIONAL_OR_KEYWORD)

    assert {each: parameters[each] for each in expected} == expected
    assert list(parameters)[: len(expected)] == list(expected)
    assert not set(parameters) - set(expected) - {"name"}


def test_the_writer_of_tokens_takes_the_options_of_every_writer_in_their_order_and_its_own_by_name():
    writers = [found("gristmill.stages.text.io.writer", name) for name in ("MegatronTokenizerWriter", "JsonlWriter")]
    tokens, lines = (of_kind(each, inspect.Parameter.POSITIONAL_OR_KEYWORD) for each in writers)
    assert list(tokens) == list(lines) == ["path", "file_extension", "write_kwargs", "fields", "name", "mode"]
    assert (tokens["file_extension"], tokens["write_kwargs"], tokens["mode"]) == ([".bin", ".idx"], {}, "ignore")

    own = of_kind(writers[0], inspect.Parameter.KEYWORD_ONLY)
    assert own == MEGATRON | {"offline": None}
    with pytest.raises(TypeError, match="model_identifier"):
        writers[0]("out")


@pytest.mark.parametrize(("module", "name", "ordered", "named"), OURS, ids=[name for _, name, *_ in OURS])
def test_what_is_only_here_has_these_parameters_and_defaults(module, name, ordered, named):
    cls = found(module, name)
    parameters = of_kind(cls, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert dict(list(parameters.items())[: len(ordered)]) == ordered
    assert list(parameters)[: len(ordered)] == list(ordered)
    by_name = of_kind(cls, inspect.Parameter.KEYWORD_ONLY)
    assert {each: by_name[each] for each in named} == named


@pytest.mark.parametrize(("module", "name", "expected"), ADDED, ids=[name for _, name, _ in ADDED])
def test_what_was_added_to_what_users_know_has_to_be_named(module, name, expected):
    by_name = of_kind(found(module, name), inspect.Parameter.KEYWORD_ONLY)
    assert {each: by_name[each] for each in expected} == expected


METHODS = {
    "HTMLExtractorAlgorithm": {"extract_text": ["html", "stop_words", "language"]},
    "URLGenerator": {"generate_urls": []},
    "DocumentIterator": {"iterate": ["file_path"], "output_columns": []},
    "DocumentExtractor": {"extract": ["record"], "input_columns": [], "output_columns": []},
    "DocumentDownloader": {
        "_get_output_filename": ["url"],
        "_download_to_path": ["url", "path"],
        "download": ["url"],
        "num_workers_per_node": [],
    },
}


@pytest.mark.parametrize(("name", "methods"), METHODS.items(), ids=METHODS)
def test_the_interfaces_users_subclass_have_their_methods(name, methods):
    cls = found(f"{DOWNLOAD}.html_extractors" if name.startswith("HTML") else DOWNLOAD, name)
    for method, parameters in methods.items():
        assert list(inspect.signature(getattr(cls, method)).parameters)[1:] == parameters


def test_records_and_documents_have_the_columns_users_know():
    warc = found(f"{DOWNLOAD}.common_crawl.warc_iterator", "CommonCrawlWarcIterator")
    pages = found(f"{DOWNLOAD}.common_crawl.extract", "CommonCrawlHTMLExtractor")

    assert warc().output_columns() == ["url", "warc_id", "source_id", "content"]
    assert pages("resiliparse").output_columns() == ["url", "warc_id", "source_id", "language", "text"]


def test_the_environment_decides_where_chosen_records_come_from(monkeypatch):
    reader = found(f"{DOWNLOAD}.common_crawl.download", "CommonCrawlWARCReader")
    for name in ("CC_USE_S3", "CC_S3_BUCKET", "CC_S3_KEY_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    usual = reader()
    assert (usual.use_s3, usual.s3_bucket, usual.s3_key_prefix) == (False, "commoncrawl", "")
    monkeypatch.setenv("CC_USE_S3", "Yes")
    monkeypatch.setenv("CC_S3_BUCKET", "mine")
    monkeypatch.setenv("CC_S3_KEY_PREFIX", "crawl-data/")
    asked = reader()
    assert (asked.use_s3, asked.s3_bucket, asked.s3_key_prefix) == (True, "mine", "crawl-data/")
    assert reader(use_s3=False).use_s3 is False
