"""Prometheus' own tool accepts exposition and rules, and sees each alert fire when it is due and not otherwise."""

import subprocess

import pytest
import yaml
from tests.run_snapshots import large_snapshot, run_snapshot, with_state

from gristmill.metrics.rules import alerts, rule_groups

pytestmark = [pytest.mark.heavy, pytest.mark.slow]
RUN = 'pipeline="curate",run="1"'
LABELS = {"pipeline": "curate", "run": "1"}
AT_WORK = {f'gristmill_run_state{{{RUN},state="running"}}': "1x40"}


def promtool(*arguments, **more):
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "snapshot", [run_snapshot(machines=1, gpus=1), with_state(run_snapshot(), "failed"), large_snapshot()], ids=range(3)
)
def test_the_exposition_has_nothing_promtool_would_have_otherwise(snapshot):
    from gristmill.metrics.exposition import Exposition

    exposition = Exposition("LocalExecutor")
    exposition.add(snapshot)

    assert promtool("check", "metrics", input=exposition.encode()[0].decode()) == ""
    assert promtool("check", "metrics", input=exposition.exact().decode()) == ""


@pytest.mark.parametrize("factor", [1.0, 0.01, 0.1])
def test_the_rules_are_accepted(tmp_path, factor):
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rule_groups(factor)))

    assert "9 rules found" in promtool("check", "rules", str(tmp_path / "rules.yml"))


# Alert -> cases: series by the minute, and the labels it fires with after 25 minutes, or None if it must not.
CASES = {
    "GristmillStageStalled": [
        (
            "a stage has work and stands still",
            AT_WORK
            | {
                f'gristmill_stage_last_progress_timestamp_seconds{{{RUN},stage="a"}}': "60x40",
                f'gristmill_stage_queued_tasks{{{RUN},stage="a"}}': "3x40",
            },
            {"stage": "a"},
        ),
        (
            "its last task hangs, with none behind it",
            AT_WORK
            | {
                f'gristmill_stage_last_progress_timestamp_seconds{{{RUN},stage="a"}}': "60x40",
                f'gristmill_stage_queued_tasks{{{RUN},stage="a"}}': "0x40",
                f'gristmill_workers{{{RUN},stage="a",state="busy"}}': "1x40",
            },
            {"stage": "a"},
        ),
        (
            "it has nothing to do",
            AT_WORK
            | {
                f'gristmill_stage_last_progress_timestamp_seconds{{{RUN},stage="a"}}': "60x40",
                f'gristmill_stage_queued_tasks{{{RUN},stage="a"}}': "0x40",
                f'gristmill_workers{{{RUN},stage="a",state="busy"}}': "0x40",
            },
            None,
        ),
        (
            "it comes further all the time",
            AT_WORK
            | {
                f'gristmill_stage_last_progress_timestamp_seconds{{{RUN},stage="a"}}': "0+60x40",
                f'gristmill_stage_queued_tasks{{{RUN},stage="a"}}': "3x40",
            },
            None,
        ),
    ],
    "GristmillMemoryHigh": [
        (
            "the run is at its limit",
            {f"gristmill_memory_bytes{{{RUN}}}": "95x40", f"gristmill_memory_limit_bytes{{{RUN}}}": "100x40"},
            {},
        ),
        ("nobody set a limit", {f"gristmill_memory_bytes{{{RUN}}}": "95x40"}, None),
        (
            "a GPU is full",
            {
                f'gristmill_gpu_memory_bytes{{{RUN},node="n",gpu="0"}}': "95x40",
                f'gristmill_gpu_memory_total_bytes{{{RUN},node="n",gpu="0"}}': "100x40",
            },
            {"node": "n", "gpu": "0"},
        ),
        (
            "a machine has room",
            {
                f'gristmill_node_memory_bytes{{{RUN},node="n"}}': "80x40",
                f'gristmill_node_memory_total_bytes{{{RUN},node="n"}}': "100x40",
            },
            None,
        ),
    ],
    "GristmillErrorsHigh": [
        (
            "two documents of a hundred fail",
            {
                f'gristmill_documents_total{{{RUN},stage="a",outcome="quarantined"}}': "0+2x40",
                f"gristmill_read_documents_total{{{RUN}}}": "0+100x40",
            },
            {},
        ),
        (
            "one of a thousand fails",
            {
                f'gristmill_documents_total{{{RUN},stage="a",outcome="quarantined"}}': "0+1x40",
                f"gristmill_read_documents_total{{{RUN}}}": "0+1000x40",
            },
            None,
        ),
    ],
    "GristmillAcceleratorIdle": [
        (
            "GPUs are starved",
            {
                f'gristmill_resource_seconds_total{{{RUN},resource="gpu",share="useful"}}': "0+10x40",
                f'gristmill_resource_seconds_total{{{RUN},resource="gpu",share="starved"}}': "0+50x40",
            },
            {},
        ),
        (
            "only CPUs are",
            {f'gristmill_resource_seconds_total{{{RUN},resource="cpu",share="starved"}}': "0+50x40"},
            None,
        ),
    ],
    "GristmillWorkersLost": [
        ("workers die", {f'gristmill_worker_losses_total{{{RUN},stage="a",cause="memory"}}': "0+1x40"}, {"stage": "a"}),
        ("two have died", {f'gristmill_worker_losses_total{{{RUN},stage="a",cause="exit"}}': "0x20 2x20"}, None),
    ],
    "GristmillDriverGone": [
        ("it vanished", {f'gristmill_run_state{{{RUN},state="running"}}': "1x20 stale"}, {"state": "running"}),
        (
            "it answers, but its numbers are old",
            AT_WORK | {f"gristmill_snapshot_timestamp_seconds{{{RUN}}}": "60x40"},
            {"state": "running"},
        ),
        (
            "it ended well, was seen, and is gone",
            {
                f'gristmill_run_state{{{RUN},state="running"}}': "1x18 0 stale",
                f'gristmill_run_state{{{RUN},state="finished"}}': "0x18 1 stale",
            },
            None,
        ),
        ("it runs", AT_WORK | {f"gristmill_snapshot_timestamp_seconds{{{RUN}}}": "0+60x40"}, None),
    ],
    "GristmillRunFailed": [
        ("it failed", {f'gristmill_run_state{{{RUN},state="failed"}}': "0x20 1x20"}, {"state": "failed"}),
        ("it did not", {f'gristmill_run_state{{{RUN},state="failed"}}': "0x40"}, None),
    ],
}


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_an_alert_fires_when_it_is_due_and_not_otherwise(tmp_path, alert):
    def expected(own):
        if own is None:
            return []
        texts = {"summary": alert.summary, "description": alert.advice}
        for name in ("stage", "pipeline", "node", "gpu"):
            value = {**LABELS, **own}.get(name, "")
            texts = {kind: text.replace(f"{{{{ $labels.{name} }}}}", value) for kind, text in texts.items()}
        return [{"exp_labels": {"severity": alert.severity, **LABELS, **own}, "exp_annotations": texts}]

    tests = [
        {
            "name": f"{alert.name}: {name}",
            "interval": "1m",
            "input_series": [{"series": series, "values": values} for series, values in given.items()],
            "alert_rule_test": [{"eval_time": "25m", "alertname": alert.name, "exp_alerts": expected(own)}],
        }
        for name, given, own in CASES[alert.name]
    ]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rule_groups()))
    (tmp_path / "tests.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": tests}))

    promtool("test", "rules", str(tmp_path / "tests.yml"))


def test_what_is_recorded_is_what_dashboards_would_compute(tmp_path):
    series = [
        (f'gristmill_documents_total{{{RUN},stage="a",outcome="out"}}', "0+60x40"),
        (f'gristmill_task_duration_seconds_bucket{{{RUN},stage="a",le="1"}}', "0+10x40"),
        (f'gristmill_task_duration_seconds_bucket{{{RUN},stage="a",le="+Inf"}}', "0+10x40"),
    ]
    samples = {
        "round(gristmill:documents:rate5m, 0.01)": (f'{{{RUN},outcome="out",stage="a"}}', 1),
        "round(gristmill:task_duration_seconds:p95_5m, 0.01)": (f'{{{RUN},stage="a"}}', 0.95),
    }
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series],
        "promql_expr_test": [
            {"expr": name, "eval_time": "20m", "exp_samples": [{"labels": labels, "value": value}]}
            for name, (labels, value) in samples.items()
        ],
    }
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rule_groups()))
    (tmp_path / "tests.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": [test]}))

    promtool("test", "rules", str(tmp_path / "tests.yml"))
