"""Neighbours run in one process unless something speaks against it."""

import gzip

import pyarrow as pa
import pytest
from tests.jsonl_files import write_documents
from tests.warc_files import crawl

from gristmill.errors import ConfigError
from gristmill.pipeline.compile import compile_chain
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.stages.text.download import DocumentExtractor, WarcReader
from gristmill.stages.text.download.common_crawl import CommonCrawlHTMLExtractor
from gristmill.stages.text.download.common_crawl.warc_iterator import CommonCrawlWarcIterator
from gristmill.stages.text.download.wikipedia.extract import WikipediaExtractor
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch


class _Step(ProcessingStage[DocumentBatch, DocumentBatch]):
    def process(self, task):
        return task


class _Apart(_Step):
    fusible = False


def shape(*stages):
    """How many stages each group has."""
    plan = compile_chain("p", list(stages), [DocumentBatch("b", pa.table({"text": ["a"]}))])
    return [len(group.stages) for group in plan.groups]


def test_equal_neighbours_are_one_group():
    assert shape(_Step(), _Step(), _Step()) == [3]


@pytest.mark.parametrize(
    "other",
    [
        _Step().with_(resources=Resources(cpus=2)),
        _Step().with_(resources=Resources(gpus=0.5)),
        _Step().with_(num_workers=1),
        _Step().with_(runtime_env={"pip": ["x"]}),
        _Step().with_(batch_size=16),
        _Apart(),
    ],
    ids=["cpus", "gpus", "workers", "environment", "batch", "not fusible"],
)
def test_a_stage_that_differs_is_a_group_of_its_own(other):
    assert shape(_Step(), other, _Step())[0] == 1


def test_a_stage_that_asks_for_a_gpu_is_never_fused_with_another():
    gpu = Resources(gpus=0.5)

    assert shape(_Step().with_(resources=gpu), _Step().with_(resources=gpu)) == [1, 1]


def test_the_first_stages_batch_size_is_the_groups():
    assert shape(_Step().with_(batch_size=16), _Step().with_(batch_size=16), _Step()) == [3]


def test_a_text_pipeline_is_one_group(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "a"}])
    stages = [JsonlReader(str(tmp_path / "in")), *(ScoreFilter(WordCountFilter()) for _ in range(5))]
    plan = compile_chain("p", [*stages, JsonlWriter(str(tmp_path / "out"))], None)

    assert [len(group.stages) for group in plan.groups] == [7]
    assert "7 stages fused" in plan.describe()


def test_a_large_file_that_cannot_be_split_is_read_apart_from_the_stages_behind_it(tmp_path):
    lines = "".join(f'{{"text": "{n * n}"}}\n' for n in range(2_000))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    stages = [JsonlReader(str(tmp_path / "a.jsonl.gz"), blocksize="4KB"), _Step(), _Step()]

    assert [len(group.stages) for group in compile_chain("p", stages, None).groups] == [1, 2]


class _ToTheEnd(_Step):
    fuses_to_the_end = True


def test_what_fuses_to_the_end_is_apart_unless_all_behind_it_up_to_a_writer_is_in_its_process(tmp_path):
    writer = JsonlWriter(str(tmp_path))

    assert shape(_ToTheEnd(), _Step(), writer) == [3]
    assert shape(_ToTheEnd(), _Step(), _Step()) == [1, 2]
    assert shape(_ToTheEnd(), _Step(), _Apart(), writer) == [1, 1, 1, 1]
    assert shape(_Apart(), _ToTheEnd(), writer) == [1, 2]
    assert shape(_ToTheEnd()) == [1]


class Plain(DocumentExtractor):
    def extract(self, record):
        return {"text": record["content"].decode()}

    def input_columns(self):
        return ["content"]

    def output_columns(self):
        return ["text"]


class Quick(Plain):
    is_quick = True


class KeepsTime(Plain):
    keeps_time = True


def archive(path, pages=40):
    path.write_bytes(b"".join(crawl(pages)))
    return str(path)


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        ({"extractor": Quick(), "blocksize": 2000}, [3]),
        ({"extractor": Plain(), "blocksize": 2000}, [1, 1, 1]),
        ({"extractor": KeepsTime(), "blocksize": 2000}, [3]),
        ({"extractor": KeepsTime(), "blocksize": 8000}, [1, 2]),
        ({"extractor": CommonCrawlHTMLExtractor("justext"), "blocksize": 2000}, [3]),
        ({"blocksize": 2000}, [2]),
        ({"extractor": Quick()}, [3]),
    ],
    ids=["quick", "slow", "keeps time", "keeps time, few parts", "jusText", "no extractor", "one part"],
)
def test_parts_of_archives_are_read_by_who_extracts_from_them_if_that_is_quick(tmp_path, options, groups):
    stages = [WarcReader(archive(tmp_path / "a.warc.gz"), **options), JsonlWriter(str(tmp_path / "out"))]

    assert [len(group.stages) for group in compile_chain("p", stages, None).groups] == groups


@pytest.mark.parametrize(
    ("extractor", "is_quick"),
    [
        (CommonCrawlHTMLExtractor("resiliparse"), True),
        (CommonCrawlHTMLExtractor("justext"), False),
        (CommonCrawlHTMLExtractor("trafilatura"), False),
        (CommonCrawlHTMLExtractor("cascade"), False),
        (WikipediaExtractor(), True),
        (WikipediaExtractor(parser="mwparserfromhell"), False),
        (Plain(), False),
    ],
)
def test_extractors_that_take_minutes_for_a_part_are_not_quick(extractor, is_quick):
    assert extractor.is_quick is is_quick


def test_files_that_are_not_divided_are_read_apart_from_a_slow_extractor_however_many_there_are(tmp_path):
    paths = [archive(tmp_path / f"{number}.warc.gz", pages=3) for number in range(12)]
    writer = JsonlWriter(str(tmp_path / "out"))

    def groups(**options):
        plan = compile_chain("p", [WarcReader(paths, extractor=KeepsTime(), **options), writer], None)
        return [len(group.stages) for group in plan.groups]

    assert groups() == [3]
    assert groups(record_limit=2) == [1, 2]


def test_an_archive_that_cannot_be_divided_is_read_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(CommonCrawlWarcIterator, "block_bytes", 1000)
    path = archive(tmp_path / "a.warc.gz")
    stages = [WarcReader(path, extractor=Quick(), record_limit=5), JsonlWriter(str(tmp_path / "out"))]

    assert [len(group.stages) for group in compile_chain("p", stages, None).groups] == [1, 2]


class _Known(_Step):
    expected_s = 0.5


class _Impossible(_Step):
    expected_s = 0.0


def groups_of(*stages):
    return compile_chain("p", list(stages), [DocumentBatch("b", pa.table({"text": ["a"]}))]).groups


def test_a_group_expects_what_all_its_stages_expect_together():
    assert [group.expected_s for group in groups_of(_Known(), _Known())] == [1.0]
    assert [group.expected_s for group in groups_of(_Known(), _Step())] == [None]


def test_a_task_that_takes_no_time_is_refused():
    with pytest.raises(ConfigError, match=r"expected expected_s > 0; got 0\.0"):
        groups_of(_Impossible())


class _Harmless(_Step):
    may_run_twice = True


class _HarmlessWriter(JsonlWriter):
    may_run_twice = True


def test_a_group_may_run_twice_if_all_its_stages_may_and_none_writes(tmp_path):
    assert [group.may_run_twice for group in groups_of(_Harmless(), _Harmless())] == [True]
    assert [group.may_run_twice for group in groups_of(_Harmless(), _Step())] == [False]
    assert [group.may_run_twice for group in groups_of(_HarmlessWriter(str(tmp_path)))] == [False]
