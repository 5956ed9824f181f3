"""The catalog is one table: names say kind and unit, and a run of any size has a bounded number of series."""

import re

import pytest
from tests.run_snapshots import large_snapshot, run_snapshot, stage_snapshot

from gristmill.metrics.catalog import CATALOG, METRICS, RUN_LABELS

UNITS = ("seconds", "bytes", "ratio", "documents", "partitions", "tasks", "workers", "retries", "losses", "recycles")


@pytest.mark.parametrize("metric", CATALOG, ids=lambda metric: metric.name)
def test_a_name_says_kind_and_unit(metric):
    assert re.fullmatch(r"gristmill_[a-z_]+", metric.name)
    assert (metric.kind == "counter") == metric.name.endswith("_total")
    base = metric.name.removesuffix("_total")
    assert base.endswith(UNITS) or metric.name in ("gristmill_run_info", "gristmill_run_state")
    assert metric.help.endswith((".", '"other".'))
    assert not set(metric.labels) & {*RUN_LABELS, "worker", "pid", "instance", "job"}


@pytest.mark.parametrize("metric", CATALOG[1:], ids=lambda metric: metric.name)  # the first's labels are the process's
def test_a_sample_has_a_value_for_each_label_and_no_set_of_them_comes_twice(metric):
    samples = list(metric.samples(run_snapshot([stage_snapshot(0), stage_snapshot(1)], machines=2, gpus=2)))

    assert samples
    assert {len(labels) for labels, _ in samples} == {len(metric.labels)}
    assert len({labels for labels, _ in samples}) == len(samples)


def test_no_series_is_one_workers():
    def series(workers):
        snapshot = run_snapshot([stage_snapshot(0, workers=workers)])
        return sum(len(list(metric.samples(snapshot))) for metric in CATALOG)

    assert series(4) == series(4_000)


def test_a_large_run_has_a_few_thousand_series():
    series = sum(len(list(metric.samples(large_snapshot()))) for metric in CATALOG)

    assert 3_000 < series < 6_000  # 1,024 GPUs have three each


def test_workers_of_fused_stages_are_counted_once():
    fused = [stage_snapshot(number, group=7) for number in range(3)]
    samples = list(METRICS["gristmill_workers"].samples(run_snapshot(fused)))

    assert sum(value for _, value in samples) == 4
    assert {labels[0] for labels, _ in samples} == {"stage_0"}
