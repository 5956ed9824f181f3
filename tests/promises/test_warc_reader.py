"""WARC files that are there already: split over workers, the same documents and bytes however many there are."""

import json
from pathlib import Path

import pytest
from tests.warc_files import crawl, packed, record

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, NoInputError
from gristmill.pipeline import Pipeline
from gristmill.stages.file_partitioning import FilePartitioningStage
from gristmill.stages.text.download import DocumentExtractor, WarcReader
from gristmill.stages.text.download.base import DocumentIterateExtractStage
from gristmill.stages.text.download.common_crawl.warc_iterator import CommonCrawlWarcIterator
from gristmill.stages.text.io.writer import JsonlWriter, ParquetWriter

HERE = LocalExecutor(num_workers=0)


class Plain(DocumentExtractor):
    """The body as text."""

    def extract(self, record):
        return {"url": record["url"], "text": record["content"].decode(), "offset": record["warc_offset"]}

    def input_columns(self):
        return ["url", "content"]

    def output_columns(self):
        return ["url", "text", "offset"]


def archive(directory, pages=300, name="a.warc.gz"):
    directory.mkdir(exist_ok=True)
    (directory / name).write_bytes(b"".join(crawl(pages)))
    return directory


def run(stages, executor=HERE):
    return Pipeline("w", stages=stages).run(executor, quiet=True)


def outputs(directory):
    return {path.name: path.read_bytes() for path in sorted(Path(directory).glob("[!.]*"))}


def urls(directory):
    lines = b"".join(outputs(directory).values()).splitlines()
    return [json.loads(line)["url"] for line in lines]


@pytest.mark.slow
def test_one_file_is_read_in_parts_by_any_number_of_workers_with_the_same_bytes(tmp_path):
    source = archive(tmp_path / "in")
    found = {}
    for workers in (1, 2, 4):
        out = tmp_path / f"out-{workers}"
        stages = [WarcReader(str(source), blocksize=20_000, extractor=Plain()), JsonlWriter(str(out))]
        result = run(stages, LocalExecutor(num_workers=workers))
        assert (result.read, result.written) == (300, 300)
        found[workers] = outputs(out)

    assert urls(tmp_path / "out-1") == [f"https://example.org/{n}" for n in range(300)]
    assert len({name.partition(".")[0] for name in found[1]}) > 5
    assert found[1] == found[2] == found[4]


def test_without_an_extractor_the_pages_are_bytes(tmp_path):
    source = archive(tmp_path / "in", 5)
    run([WarcReader(str(source), details=True), ParquetWriter(str(tmp_path / "out"))])
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "out")
    assert table.column_names[:4] == ["url", "warc_id", "source_id", "content"]
    assert table.column("content")[0].as_py().startswith(b"<html>")
    assert table.column("http_status").to_pylist() == [200] * 5


def test_texts_of_wet_files(tmp_path):
    (tmp_path / "in").mkdir()
    texts = [record("conversion", f"text {n}".encode(), f"https://example.org/{n}") for n in range(9)]
    (tmp_path / "in" / "a.warc.wet.gz").write_bytes(b"".join(map(packed, texts)))
    run([WarcReader(str(tmp_path / "in"), kind="wet", add_filename_column=True), JsonlWriter(str(tmp_path / "out"))])

    lines = [json.loads(line) for line in b"".join(outputs(tmp_path / "out").values()).splitlines()]
    assert [line["text"] for line in lines] == [f"text {n}" for n in range(9)]
    assert lines[0]["file_name"] == "a.warc.wet.gz"


def test_the_form_users_know_is_split_too(tmp_path):
    source = archive(tmp_path / "in")
    reading = DocumentIterateExtractStage(CommonCrawlWarcIterator(details=True), Plain())
    run([FilePartitioningStage(str(source), blocksize=20_000), reading, JsonlWriter(str(tmp_path / "out"))])

    assert len(outputs(tmp_path / "out")) > 5
    assert urls(tmp_path / "out") == [f"https://example.org/{n}" for n in range(300)]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"filedesc://x.arc 0.0.0.0 2012\n", "an ARC file: it is the format of before 2013"), (b"<html>", "begins with")],
)
def test_a_file_of_another_format_is_said_before_the_run(tmp_path, content, said):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.warc").write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        Pipeline("w", stages=[WarcReader(str(tmp_path / "in")), JsonlWriter(str(tmp_path / "out"))]).plan(HERE)


def test_mistakes_are_said_when_the_reader_is_made_or_planned(tmp_path):
    with pytest.raises(ConfigError, match=r"expected kind to be one of .*; got 'wat'; did you mean"):
        WarcReader(str(tmp_path), kind="wat")
    with pytest.raises(ConfigError, match="no extractor and no details for texts"):
        WarcReader(str(tmp_path), kind="wet", details=True)
    with pytest.raises(NoInputError, match=r"ending in \.warc"):
        Pipeline("w", stages=[WarcReader(str(tmp_path)), JsonlWriter(str(tmp_path / "out"))]).plan(HERE)


def test_a_limit_counts_from_the_beginning_of_each_file(tmp_path):
    archive(tmp_path / "in")
    archive(tmp_path / "in", name="b.warc.gz")
    stages = [WarcReader(str(tmp_path / "in"), blocksize=20_000, extractor=Plain(), record_limit=3)]
    run([*stages, JsonlWriter(str(tmp_path / "out"))])
    assert urls(tmp_path / "out") == [f"https://example.org/{n}" for n in range(3)] * 2
