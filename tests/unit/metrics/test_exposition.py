"""What a Prometheus server gets: the latest snapshot, counters that never fall, labels that stay and stay few."""

import re

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.run_snapshots import large_snapshot, run_snapshot, stage_snapshot, with_state

from gristmill.backends.local import LocalExecutor
from gristmill.metrics import exposition
from gristmill.metrics.catalog import CATALOG, ENDED, MAX_REASONS
from gristmill.metrics.exposition import Exposition
from gristmill.pipeline import Pipeline
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter


def values(text, name):
    """Return the samples of one metric: labels as a frozenset without the run's own, and value."""
    return {
        frozenset((key, value) for key, value in sample.labels.items() if key not in ("pipeline", "run")): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if sample.name == name
    }


def one(text, name, **labels):
    return values(text, name)[frozenset(labels.items())]


def test_every_metric_of_the_catalog_is_exposed_with_its_help_and_kind():
    exposition = Exposition("LocalExecutor")
    exposition.add(run_snapshot(machines=1, gpus=1))
    text, content_type = exposition.encode()
    families = re.findall(r"^# TYPE (\S+) (\S+)$", text.decode(), re.MULTILINE)

    assert families == [(metric.name, "gauge" if metric.kind == "info" else metric.kind) for metric in CATALOG]
    assert content_type.startswith("text/plain")


@pytest.mark.slow
def test_bytes_are_those_of_the_books_and_of_the_files_of_an_exchange(tmp_path):
    (tmp_path / "in").mkdir()
    for part in range(3):
        texts = ["one two three", "short", f"four five six {part}"]
        (tmp_path / "in" / f"{part}.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in texts))
    stages = [JsonlReader(str(tmp_path / "in")), ScoreFilter(WordCountFilter(2)), Exchange("text", num_partitions=2)]
    pipeline = Pipeline("bytes", stages=[*stages, JsonlWriter(str(tmp_path / "out"))])
    snapshots, spilled = [], []

    def watch(snapshot):
        snapshots.append(snapshot)
        files = sum(file.stat().st_size for file in tmp_path.rglob("exchange-*/*.arrow") if file.exists())
        spilled.append(files)

    result = pipeline.run(LocalExecutor(num_workers=0), observer=watch, quiet=True)
    exposition = Exposition()
    exposition.add(snapshots[-1])
    text, counts = exposition.exact(), result.counts["word_count"]

    assert one(text, "gristmill_stage_output_bytes_total", stage="word_count") == counts.bytes_out > 0
    found = values(text, "gristmill_dropped_bytes_total")
    assert found == {frozenset({("stage", "word_count"), ("reason", "word_count")}): counts.dropped_bytes["word_count"]}
    assert one(text, "gristmill_spilled_bytes_total", stage="exchange") == max(spilled) > 0


def test_a_server_that_asks_for_openmetrics_gets_it():
    exposition = Exposition()
    exposition.add(run_snapshot())
    text, content_type = exposition.encode("application/openmetrics-text; version=1.0.0")

    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")


def test_the_run_is_named_by_plan_and_time():
    exposition = Exposition("LocalExecutor")
    exposition.add(run_snapshot())
    text, _ = exposition.encode()

    assert b'pipeline="curate",run="01234567-20231114T221320Z"' in text
    assert b'executor="LocalExecutor"' in text


def test_a_counter_does_not_fall_when_an_attempt_is_taken_back_but_a_file_says_what_the_books_say():
    exposition = Exposition()
    exposition.add(run_snapshot(read=100))
    exposition.encode()
    exposition.add(run_snapshot(read=90))

    assert one(exposition.encode()[0], "gristmill_read_documents_total") == 100
    assert one(exposition.exact(), "gristmill_read_documents_total") == 90


def test_a_bucket_does_not_fall_either():
    exposition = Exposition()
    slots = stage_snapshot().latency
    exposition.add(run_snapshot([stage_snapshot(latency=(9, *slots[1:]))]))
    exposition.encode()
    exposition.add(run_snapshot([stage_snapshot(latency=(1, slots[1] + 20, *slots[2:]))]))
    text, _ = exposition.encode()

    bucket = "gristmill_task_duration_seconds_bucket"
    assert one(text, bucket, stage="stage_0", le="0.001") == 9
    assert one(text, bucket, stage="stage_0", le="+Inf") == 1 + 20 + sum(slots[1:])


def test_reasons_beyond_the_most_are_counted_together_and_keep_their_names_from_one_scrape_to_the_next():
    exposition = Exposition()
    early = {f"reason {number:03}": 1 for number in range(MAX_REASONS)}
    exposition.add(run_snapshot([stage_snapshot(reasons=early)]))
    exposition.encode()
    late = {f"a new one {number}": 1_000 for number in range(10)}
    exposition.add(run_snapshot([stage_snapshot(reasons=late | early)]))
    found = values(exposition.encode()[0], "gristmill_dropped_documents_total")

    assert len(found) == MAX_REASONS + 1
    assert found[frozenset({("stage", "stage_0"), ("reason", "other")})] == 10_000
    assert sum(found.values()) == 10_000 + MAX_REASONS


@pytest.mark.parametrize("reason", ['a "quoted"\\ one', "two\nlines", "half \ud800 a character", "x" * 5_000, ""])
def test_a_reason_of_any_form_is_a_label(reason):
    exposition = Exposition()
    exposition.add(run_snapshot([stage_snapshot(reasons={reason: 3})]))
    found = values(exposition.encode()[0], "gristmill_dropped_documents_total")

    assert list(found.values()) == [3]
    ((_, label),) = [pair for pair in next(iter(found)) if pair[0] == "reason"]
    assert len(label) <= 200


@pytest.mark.parametrize("state", ENDED)
def test_what_is_true_only_of_a_running_run_is_gone_when_it_has_ended(state):
    exposition = Exposition()
    exposition.add(with_state(run_snapshot(machines=1, gpus=1), state))
    names = set(re.findall(rb"^# TYPE (\S+)", exposition.encode()[0], re.MULTILINE))

    assert names == {metric.name.encode() for metric in CATALOG if metric.lasts}


def test_a_run_that_raised_before_it_could_say_so_is_said_to_have_failed():
    exposition = Exposition()
    exposition.add(run_snapshot())
    exposition.end("failed")

    assert one(exposition.encode()[0], "gristmill_run_state", state="failed") == 1
    assert one(exposition.encode()[0], "gristmill_run_state", state="running") == 0


def test_the_next_run_of_a_workflow_stands_beside_those_that_ended():
    exposition = Exposition()
    exposition.add(with_state(run_snapshot(name="first"), "finished"))
    exposition.add(run_snapshot(name="second", started_at=1_700_000_100.0))
    exposition.add(with_state(run_snapshot(name="second", started_at=1_700_000_100.0), "finished"))
    exposition.add(run_snapshot(name="second", started_at=1_700_000_200.0))
    runs = set(re.findall(rb'gristmill_run_info\{.*pipeline="(\w+)",run="(\S+)",', exposition.encode()[0]))

    assert len(runs) == 3


def test_segments_of_one_run_with_plans_of_their_own_keep_its_name():
    exposition = Exposition()
    exposition.add(run_snapshot())
    exposition.add(msgspec.structs.replace(run_snapshot(), fingerprint="ffffffff", started_at=1_700_000_900.0))

    assert set(re.findall(rb'run="(\S+?)"', exposition.encode()[0])) == {b"01234567-20231114T221320Z"}


@pytest.mark.slow
def test_a_large_run_fits_into_a_scrape():
    exposition = Exposition()
    exposition.add(large_snapshot())

    assert len(exposition.encode()[0]) < 1 << 20


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=1.0.0", "text/plain; version=1.0.0"])
def test_names_are_not_looked_at_for_what_they_do_not_hold(monkeypatch, accept):
    """What the client escapes by itself has the same bytes."""
    snapshot = large_snapshot()
    sooner, by_itself = Exposition("LocalExecutor"), Exposition("LocalExecutor")
    sooner.add(snapshot)
    by_itself.add(snapshot)
    found = sooner.encode(accept)
    monkeypatch.setattr(exposition, "partial", type("NoPartial", (), {}))  # nothing is one, so nothing is replaced

    assert found == by_itself.encode(accept)
    assert "escaping=underscores" in found[1]
