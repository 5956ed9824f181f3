"""A report says what the ledger says, of any run, and the same whoever did the work."""

import json
import re
from collections import Counter

import jsonschema
import pyarrow as pa
import pytest
from tests.jsonl_files import write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.cli.report import report as report_command
from gristmill.cli.run_files import find_runs
from gristmill.dashboard.duplicates import read_duplicates
from gristmill.dashboard.report import SCHEMA, Report, schema
from gristmill.dashboard.report_documents import documents_sections
from gristmill.dashboard.run_data import read_run
from gristmill.dashboard.run_diff import compare_runs
from gristmill.errors import ConfigError
from gristmill.metrics.snapshot import StageCounts
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import Observation
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.classifiers.base import KeepLabels
from gristmill.stages.text.filters import DocumentFilter, ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)
BY_SOURCE = Observation(slices=("source",))
HOSTILE = "</style><script>alert(1)</script>\u202e\x1b"


class FailsOnSevens(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "fails_on_sevens"

    def process(self, task):
        for n in task.column("n").to_pylist():
            if n % 37 == 7:
                raise ValueError(f"{HOSTILE} {n}")
        return task


class SplitsTenths(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "splits_every_tenth"

    def process(self, task):
        return [task, task.filter(pa.array([n % 10 == 0 for n in task.column("n").to_pylist()]))]


class OddLettersFilter(DocumentFilter[int]):
    """A user's own, in five lines."""

    def score_document(self, text: str) -> int:
        return text.count("o")

    def bounds(self):
        return None, 4


def write_corpus(place, parts=3, size=40):
    for part in range(parts):
        numbers = range(size * part, size * part + size)
        documents = [
            {"n": n, "id": f"doc-{n}", "text": "word " * (n % 7) + HOSTILE * (n % 5 == 0), "source": f"s{part}"}
            for n in numbers
        ]
        write_documents(place / f"part-{part}.jsonl", documents)
        with (place / f"part-{part}.jsonl").open("a") as file:
            file.write("{broken\n")


def pipeline(place, out):
    filters = ScoreFilter([WordCountFilter(min_words=2), OddLettersFilter()])
    stages = [FailsOnSevens(), SplitsTenths(), filters, JsonlWriter(str(out))]
    return Pipeline("<b>curate", stages=[JsonlReader(str(place)), *stages])


def reported(path):
    return Report.of([read_run(run) for run in find_runs(str(path), who="report")])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One run of everything that can happen to a document."""
    work = tmp_path_factory.mktemp("report")
    write_corpus(work / "in")
    result = pipeline(work / "in", work / "out").run(HERE, checkpoint_path=work / "run", observe=BY_SOURCE)
    return work, result


def ledger_counts(path):
    """The lines of a ledger added up the plain way, without the code under test."""
    counts: dict[str, dict[str, float]] = {}
    for line in path.read_text().splitlines():
        for stage, own in json.loads(line)["counts"].items():
            there = counts.setdefault(stage, {})
            flat = {key: value for key, value in own.items() if isinstance(value, int | float)}
            flat |= {f"dropped {reason}": number for reason, number in own.get("dropped", {}).items()}
            flat |= {f"bytes of {reason}": number for reason, number in own.get("dropped_bytes", {}).items()}
            for key, number in flat.items():
                there[key] = there.get(key, 0) + number
    return counts


def test_every_number_of_documents_is_the_ledgers(finished):
    work, result = finished
    documents = reported(work / "run").runs[0].run.documents
    counts = ledger_counts(work / "run" / "ledger.jsonl")

    for stage in documents.funnel:
        own = counts[stage.stage]
        named = {key: getattr(stage, key) for key in ("read", "created", "written", "quarantined", "bytes_in")}
        assert named == {key: own.get(key, 0) for key in named}
        dropped = {f"dropped {reason.reason}": reason.documents for reason in stage.reasons}
        assert dropped == {key: value for key, value in own.items() if key.startswith("dropped ")}
    assert {stage.stage for stage in documents.funnel} == set(counts)
    books = documents.books
    assert (books.read, books.created, books.written) == (result.read, result.created, result.written)
    assert (books.dropped, books.quarantined) == (result.dropped_total, result.quarantined)
    assert books.created
    assert books.dropped
    assert books.quarantined
    assert books.balanced
    assert sum(group.documents for group in documents.quarantine) == result.quarantined


def test_every_number_of_bytes_and_seconds_is_the_ledgers(finished):
    work, _ = finished
    run, counts = reported(work / "run").runs[0].run, ledger_counts(work / "run" / "ledger.jsonl")

    for stage in run.documents.funnel:
        own = counts[stage.stage]
        assert (stage.bytes_in, stage.bytes_out) == (own["bytes_in"], own.get("bytes_out"))
        lost = {f"bytes of {reason.reason}": reason.num_bytes for reason in stage.reasons}
        assert lost == {key: value for key, value in own.items() if key.startswith("bytes of ")}
        assert all(lost.values())
    assert {stage.stage: stage.process_s for stage in run.time.stages} == {
        name: pytest.approx(own["process_s"], abs=0.0005) for name, own in counts.items()
    }


def test_what_was_recorded_of_rules_and_slices_adds_up_to_the_ledger(finished):
    work, _ = finished
    documents = reported(work / "run").runs[0].run.documents
    [stage] = [stage for stage in documents.funnel if stage.reasons]
    counts = ledger_counts(work / "run" / "ledger.jsonl")[stage.stage]
    came = counts["documents_in"]

    for rule in documents.rules:  # each sees what the one before it has kept
        assert rule.refused == rule.dropped == counts[f"dropped {rule.name}"]
        assert rule.kept == came - rule.refused
        came = rule.kept
    assert came == counts["documents_out"]
    assert [rule.name for rule in documents.rules] == ["word_count", "odd_letters"]
    [sources] = documents.slices
    assert sum(value.written for value in sources.values) == documents.books.written
    assert sum(value.written_bytes for value in sources.values) == counts["bytes_out"]
    for reason in stage.reasons:
        losses = [loss for value in sources.values for loss in value.losses if loss.reason == reason.reason]
        assert sum(loss.documents for loss in losses) == counts[f"dropped {reason.reason}"]
        assert sum(loss.num_bytes for loss in losses) == counts[f"bytes of {reason.reason}"]
    written = [file.read_text(encoding="utf-8").splitlines() for file in (work / "out").glob("*.jsonl")]
    lines = [json.loads(line) for file in written for line in file]
    assert {value.value: value.written for value in sources.values} == Counter(line["source"] for line in lines)


def test_the_page_shows_these_numbers_and_only_as_text(finished):
    work, result = finished
    made = reported(work / "run")
    page = made.to_html()

    for number in (result.read, result.written, *(n for own in result.dropped.values() for n in own.values())):
        assert re.search(rf">[−+]?{number:,}[ <]", page)
    body = page.partition("<body>")[2]
    assert page.count("</style>") == 1
    assert "<script" not in page
    assert "<img" not in page
    assert "<b>curate" not in body
    assert "&lt;script&gt;" in body
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "default-src &#x27;none&#x27;" in page


def test_the_json_has_the_form_that_is_shipped(finished):
    work, _ = finished
    shipped = json.loads(SCHEMA.read_text(encoding="utf-8"))

    assert shipped == json.loads(json.dumps(schema())), "rewrite it: python -m tests.promises.test_report"
    said = json.loads(json.dumps(reported(work / "run").to_json()))
    jsonschema.validate(said, shipped)
    del said["runs"][0]["run"]["documents"]["books"]["read"]
    said["runs"][0]["run"]["documents"]["books"]["written"] = "many"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(said, shipped)


@pytest.mark.slow
def test_documents_kept_by_label_are_shown_by_label_and_compared_by_it(tmp_path):
    write_corpus(tmp_path / "in")
    for wanted in ("s0", "s1"):
        stages = [
            JsonlReader(str(tmp_path / "in")),
            KeepLabels("source", (wanted,)),
            JsonlWriter(str(tmp_path / wanted)),
        ]
        Pipeline("labels", stages=stages).run(HERE)
    a, b = (reported(tmp_path / wanted) for wanted in ("s0", "s1"))
    (rule,) = a.runs[0].run.documents.rules

    assert [(found.label, found.kept, found.refused) for found in rule.labels] == [
        *(("s0", 40, 0), ("s1", 0, 40), ("s2", 0, 40)),
    ]
    assert (rule.kept, rule.refused, rule.dropped) == (40, 80, 80)
    assert re.search(r">s2<.*?>0<.*?>40<", a.to_html())
    (pair,) = compare_runs(a.runs[0].run, b.runs[0].run, configuration=()).rules
    assert (pair.index, pair.moved) == (0, False)


def test_what_is_about_documents_is_the_same_for_any_number_of_workers(finished, tmp_path):
    work, _ = finished
    four_workers = LocalExecutor(num_workers=4)
    pipeline(work / "in", tmp_path / "out").run(four_workers, checkpoint_path=tmp_path / "run", observe=BY_SOURCE)
    one, four = (reported(path / "run").runs[0] for path in (work, tmp_path))

    assert one.run.documents == four.run.documents
    assert documents_sections(one.run) == documents_sections(four.run)
    assert (one.verdict.documents, one.verdict.warnings) == (four.verdict.documents, four.verdict.warnings)


def test_a_run_with_an_exchange_is_one_run(tmp_path):
    write_corpus(tmp_path / "in")
    stages = [JsonlReader(str(tmp_path / "in")), FailsOnSevens(), Exchange("id", 2), ScoreFilter(OddLettersFilter())]
    result = Pipeline("meets", stages=[*stages, JsonlWriter(str(tmp_path / "out"))]).run(
        HERE, checkpoint_path=tmp_path / "run"
    )
    [part] = reported(tmp_path / "run").runs

    assert (part.run.documents.books.read, part.run.documents.books.written) == (result.read, result.written)
    assert part.run.documents.books.balanced
    assert [stage.stage for stage in part.run.documents.funnel] == list(result.counts)


def test_a_run_that_was_killed_says_so(finished, tmp_path):
    work, _ = finished
    run = tmp_path / "run"
    run.mkdir()
    for name in ("header.json", "ledger.jsonl", "status.json", "lock"):
        (run / name).write_bytes((work / "run" / name).read_bytes())
    status = json.loads((run / "status.json").read_text()) | {"state": "running"}
    (run / "status.json").write_text(json.dumps(status))
    lines = (run / "ledger.jsonl").read_text().splitlines(keepends=True)
    (run / "ledger.jsonl").write_text("".join(lines[:2]) + lines[2][:50])  # torn
    [part] = reported(run).runs

    assert part.run.state == "killed"
    assert part.run.documents.books.balanced
    assert "was killed" in part.verdict.time[0]
    assert "2 of 3 source partitions" in part.verdict.time[0]


def test_a_deduplication_has_a_report_of_its_findings_and_its_runs(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": f"d{n}", "text": f"{HOSTILE} {n % 4}"} for n in range(12)])
    ExactDeduplicationWorkflow(str(tmp_path / "out"), str(tmp_path / "in"), "jsonl").run(executor=HERE)
    report_command(str(tmp_path / "out"))
    page = (tmp_path / "out" / ".gristmill" / "exact" / "report.html").read_text()

    assert "8 of 12 documents (67 %) are duplicates" in page
    assert "<script" not in page
    [run] = find_runs(str(tmp_path / "out"), who="report")
    assert read_run(run).state == "finished"
    findings = (tmp_path / "out" / "report.json").read_bytes()
    assert HOSTILE[:9] in str(read_duplicates(findings, examples=True))
    assert HOSTILE[:9] not in str(read_duplicates(findings, examples=False))
    assert read_duplicates(b'{"read": 5}', examples=True) is None


def test_a_run_on_a_store_has_the_same_report(finished):
    import fsspec

    work, _ = finished
    store, home = fsspec.filesystem("memory"), "/reports/run"
    for name in ("header.json", "status.json", "report.json", "metrics.jsonl"):
        store.pipe(f"{home}/{name}", (work / "run" / name).read_bytes())
    lines = (work / "run" / "ledger.jsonl").read_text().splitlines(keepends=True)
    store.pipe(f"{home}/ledger/00000001.jsonl", ('{"fresh": true}\n' + lines[0]).encode())
    store.pipe(f"{home}/ledger/00000002.jsonl", ("{}\n" + "".join(lines[1:])).encode())
    for kind in ("quarantine", "measures"):
        for file in (work / "run").glob(f"{kind}/*.*"):
            store.pipe(f"{home}/{kind}/{file.name}", file.read_bytes())
    here, there = reported(work / "run").runs[0].run, reported("memory://reports/run").runs[0].run

    assert there.documents == here.documents
    assert there.documents.quarantine
    assert there.setting == here.setting


def test_what_workers_did_is_told_from_the_last_snapshot(finished):
    work, _ = finished
    time = reported(work / "run").runs[0].run.time
    [reader] = [stage for stage in time.stages if stage.stage == "jsonl_reader"]

    assert reader.tasks == 3
    assert reader.p50_s <= reader.p95_s <= reader.longest_s
    assert time.ended_at >= time.started_at > 0
    setting = reported(work / "run").runs[0].run.setting
    assert {"gristmill", "python"} <= set(setting.versions)
    assert setting.host["cpus"].isdecimal()


@pytest.mark.parametrize("name", ["header.json", "status.json", "report.json", "ledger.jsonl"])
@pytest.mark.parametrize("content", [b"", b"\0\0\0", b'{"stages": 5, "inputs": [[1]]}', b"[1]", None])
def test_a_damaged_file_costs_what_it_held(finished, tmp_path, name, content):
    work, _ = finished
    run = tmp_path / "run"
    run.mkdir()
    for own in ("header.json", "ledger.jsonl", "status.json", "report.json", "lock"):
        (run / own).write_bytes((work / "run" / own).read_bytes())
    (run / name).unlink()
    if content is not None:
        (run / name).write_bytes(content)

    assert reported(run).to_html().endswith("</html>\n")


def test_the_command_writes_a_file_that_only_its_owner_reads(finished, capsys, tmp_path):
    work, result = finished
    report_command(str(work / "run"), output=str(tmp_path / "r.html"))

    assert (tmp_path / "r.html").stat().st_mode & 0o777 == 0o600
    assert f"{result.written:,} were kept" in capsys.readouterr().out


def test_a_place_that_cannot_be_written_and_one_that_is_not_a_run_are_named(finished, tmp_path):
    work, _ = finished
    with pytest.raises(ConfigError, match=r"expected a file that can be written at .*/missing/r\.html"):
        report_command(str(work / "run"), output=str(tmp_path / "missing" / "r.html"))
    with pytest.raises(ConfigError, match="report: expected the directory of a run"):
        report_command(str(tmp_path))


def test_a_run_in_which_nothing_was_read_has_a_report(tmp_path):
    write_documents(tmp_path / "in" / "empty.jsonl", [])
    pipeline(tmp_path / "in", tmp_path / "out").run(HERE, checkpoint_path=tmp_path / "run")
    [part] = reported(tmp_path / "run").runs

    assert part.run.documents.books.read == 0 == StageCounts().read
    assert "0 documents were read" in part.verdict.documents[0]


if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")
