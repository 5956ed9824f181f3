"""Pipelines, results and batches show themselves in notebooks, and no text in them becomes markup."""

import json
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.metrics.snapshot import StageCounts
from gristmill.pipeline import Pipeline
from gristmill.pipeline.workflow import WorkflowRunResult
from gristmill.stages.exchange import Shuffle
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch

TABLE = ("p", "b", "table", "thead", "tbody", "tr", "th", "td")
HOSTILE = "</td></svg><script>alert(1)</script><img src=x onerror=alert(1)>\x00\u202e'\""


class Elements(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.names, self.texts = set(), []
        self.attributes = set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data):
        self.texts.append(data)


def check(page, *allowed):
    found = Elements(page)
    assert found.names <= set(allowed)
    assert not any(name.startswith("on") for name in found.attributes)
    return "".join(found.texts)


@pytest.fixture
def pipeline(tmp_path):
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in "abcb"))
    return Pipeline("demo", stages=[JsonlReader(str(tmp_path / "in.jsonl")), JsonlWriter(str(tmp_path / "out"))])


def test_a_batch_shows_ten_rows_cut(pipeline):
    table = pa.table({"id": [str(n) for n in range(25)], HOSTILE: [HOSTILE] * 25, "long": ["x" * 10**6] * 25})
    page = DocumentBatch("demo", table)._repr_html_()
    said = check(page, *TABLE)

    assert page.count("<tr>") == 11
    assert len(page) < 20_000
    assert "alert(1)" in said
    assert "and 15 more rows" in said
    assert "\u202e" not in page
    assert "\x00" not in page


def test_a_pipeline_shows_its_plan_or_what_is_wrong(pipeline):
    said = check(pipeline._repr_html_(), *TABLE, "br")
    assert "1 source partition of 1 file, 56 bytes" in said
    assert "jsonl_reader" in said
    assert "2 stages fused, 1 cpu a worker" in said
    missing = Pipeline(HOSTILE, stages=[JsonlReader("/no/such/file.jsonl"), JsonlWriter("/no/out")])
    said = check(missing._repr_html_(), "pre")
    assert "no/such/file" in said
    assert "alert(1)" in said


def test_a_result_shows_its_funnel(pipeline):
    result = pipeline.run(LocalExecutor(num_workers=0), quiet=True)
    result.counts[f"stage {HOSTILE}"] = StageCounts(documents_in=4, documents_out=2, dropped={HOSTILE: 2})
    page = result._repr_html_()
    said = check(page, "p", "svg", "g", "title", "text", "rect")

    assert "read 4, written 4" in said
    assert "2 (−2)" in said
    assert page.count("<rect") == 2 * len(result.counts)


def test_a_plan_shows_its_groups_escaped(pipeline):
    stage = pipeline.stages[1].with_(name=HOSTILE)
    plan = Pipeline(HOSTILE, stages=[pipeline.stages[0], Shuffle(), stage]).plan(LocalExecutor(num_workers=0))
    said = check(plan._repr_html_(), *TABLE, "br")

    assert "alert(1)" in said
    assert {"1.0", "2.0"} <= set(Elements(plan._repr_html_()).texts)


def test_a_workflow_shows_its_words_and_the_funnels_of_its_pipelines(pipeline):
    result = WorkflowRunResult(f"find {HOSTILE}", summary=f"all {HOSTILE}")
    result.add_pipeline_tasks(HOSTILE, pipeline.run(LocalExecutor(num_workers=0), quiet=True))
    said = check(result._repr_html_(), "p", "b", "pre", "svg", "g", "title", "text", "rect")

    assert said.count("alert(1)") == 6  # each of the three has two
    assert "read 4, written 4" in said
