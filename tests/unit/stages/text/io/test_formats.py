"""One list of formats: what it names can be read, written, deduplicated and asked for by a command."""

import typing

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.cli import decontaminate, dedup
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.text.io import reader as readers
from gristmill.stages.text.io import writer as writers
from gristmill.stages.text.io.formats import FORMATS, READERS, WRITERS, check_format
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)
TEXTS = ["one", "two", "one", "three"]


# A dataset with versions, samples of several files each, tokens: they are read or written, but not by a format's name.
NOT_BY_NAME = {"HuggingFaceReader", "LanceReader", "LanceWriter", "MegatronTokenizerWriter"}
NOT_BY_NAME |= {"WebDatasetReader", "WebDatasetWriter"}


def test_every_reader_and_writer_that_is_exported_has_a_format():
    named = {cls.__name__ for cls in (*READERS.values(), *WRITERS.values())}
    assert named | NOT_BY_NAME == {n for n in (*readers.__all__, *writers.__all__) if n.endswith(("Reader", "Writer"))}


@pytest.mark.parametrize("name", [*WRITERS])
def test_what_a_format_writes_it_reads_again(tmp_path, name):
    batch = DocumentBatch("b", pa.table({"text": TEXTS, "n": [1, 2, 3, 4]}))
    WRITERS[name](str(tmp_path)).process(batch)
    partitioning, stage = READERS[name](str(tmp_path), **READERS[name].options_for(["text"])).decompose()
    batches = [stage.process(task) for task in partitioning.partitions()]

    assert [text for batch in batches for text in batch.column("text").to_pylist()] == TEXTS


@pytest.mark.parametrize("name", [*WRITERS])
def test_documents_of_every_format_that_is_written_are_deduplicated(tmp_path, name):
    source = [DocumentBatch("b", pa.table({"id": list("abcd"), "text": TEXTS}))]
    Pipeline("make", stages=[WRITERS[name](str(tmp_path / "in"))]).run(HERE, source, quiet=True)
    result = ExactDeduplicationWorkflow(
        output_path=str(tmp_path / "out"), input_path=str(tmp_path / "in"), input_filetype=name, text_field="text"
    ).run(executor=HERE)

    assert result.metadata["num_duplicates"] == 1


@pytest.mark.parametrize("name", ["tsv", "jsnl"])
def test_a_format_that_cannot_be_used_is_refused_with_the_nearest_that_can(name):
    with pytest.raises(
        ConfigError, match=r"expected kind to be one of \['jsonl', 'parquet', 'arrow', 'csv', 'text'\]; got"
    ) as raised:
        check_format(name, WRITERS, who="w", option="kind")

    assert ("did you mean 'jsonl'?" in str(raised.value)) == (name == "jsnl")


def test_commands_name_the_formats_they_take():
    (option,) = typing.get_args(dedup.FileType)[1:]
    hints = typing.get_type_hints(decontaminate.decontaminate, include_extras=True)
    said = {option.help, typing.get_args(hints["filetype"])[1].help}

    assert said == {f"{', '.join([*WRITERS][:-1])} or {[*WRITERS][-1]}."}
    assert set(WRITERS) <= set(FORMATS)
