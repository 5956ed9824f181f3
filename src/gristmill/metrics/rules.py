"""Alerts and recording rules for Prometheus, as data, over the metrics of the catalog.

Every time in a rule is a number here, so that a test can make the same rules with shorter times and see them fire on a
live server. What an alert tells the person it wakes is part of the rule.
"""

from dataclasses import dataclass

STALLED_S = 300.0
MEMORY_SHARE = 0.9
ERROR_SHARE = 0.01
IDLE_SHARE = 0.5
LOST_WORKERS = 3
SEVERE, WARNING = "critical", "warning"
AT_WORK = 'state=~"starting|running|draining"'
RUN = "pipeline, run"


@dataclass(frozen=True)
class Alert:
    """One alert. `for_s` is how long the expression must hold; texts may use `{{ $labels.stage }}`."""

    name: str
    expression: str
    for_s: float
    severity: str
    summary: str
    advice: str


@dataclass(frozen=True)
class Recording:
    """A query that is computed ahead of time, because every dashboard asks it of all series."""

    name: str
    expression: str


def alerts(factor: float = 1.0) -> tuple[Alert, ...]:
    """Return the alerts, with all their times multiplied by `factor`."""
    return (*_of_progress(factor), *_of_resources(factor), *_of_the_end(factor))


def _rate(metric: str, labels: str, factor: float) -> str:
    return f"sum by ({RUN}) (rate({metric}{labels}[{duration(600 * factor)}]))"


def _of_progress(factor: float) -> tuple[Alert, ...]:
    failed = _rate("gristmill_documents_total", '{outcome="quarantined"}', factor)
    read = _rate("gristmill_read_documents_total", "", factor)
    return (
        Alert(
            "GristmillStageStalled",
            f"(time() - gristmill_stage_last_progress_timestamp_seconds > {STALLED_S * factor:g})"
            f" and on ({RUN}, stage) (gristmill_stage_queued_tasks > 0"
            f' or sum by ({RUN}, stage) (gristmill_workers{{state="busy"}}) > 0)'
            f' and on ({RUN}) (gristmill_run_state{{state="running"}} == 1)',
            60 * factor,
            WARNING,
            "Stage {{ $labels.stage }} of {{ $labels.pipeline }} has work but makes no progress",
            "`gristmill status RUN_DIR` names the document it is at. A stage that asks a server may be waiting for it.",
        ),
        Alert(
            "GristmillErrorsHigh",
            f"{failed} / ({read} > 0) > {ERROR_SHARE}",
            300 * factor,
            WARNING,
            "More than one document in a hundred of {{ $labels.pipeline }} goes to quarantine",
            "The quarantine of the run directory holds them, each with its error.",
        ),
        Alert(
            "GristmillWorkersLost",
            f"sum by ({RUN}, stage) (increase(gristmill_worker_losses_total[{duration(600 * factor)}]))"
            f" >= {LOST_WORKERS}",
            0,
            WARNING,
            "Workers of stage {{ $labels.stage }} of {{ $labels.pipeline }} die",
            "gristmill_worker_losses_total says by what cause. Memory: fewer workers, or smaller batches.",
        ),
    )


def _of_resources(factor: float) -> tuple[Alert, ...]:
    def full(used: str, total: str, *, on: str) -> str:
        return f"{used} / on ({on}) ({total} > 0) > {MEMORY_SHARE}"

    memory = " or ".join(
        (
            full("gristmill_memory_bytes", "gristmill_memory_limit_bytes", on=RUN),
            full("gristmill_node_memory_bytes", "gristmill_node_memory_total_bytes", on=f"{RUN}, node"),
            full("gristmill_gpu_memory_bytes", "gristmill_gpu_memory_total_bytes", on=f"{RUN}, node, gpu"),
        )
    )
    useful = _rate("gristmill_resource_seconds_total", '{resource="gpu", share="useful"}', factor)
    there = _rate("gristmill_resource_seconds_total", '{resource="gpu"}', factor)
    return (
        Alert(
            "GristmillMemoryHigh",
            memory,
            120 * factor,
            WARNING,
            "Memory of {{ $labels.pipeline }} {{ $labels.node }} {{ $labels.gpu }} is nearly used up",
            "Give the run a higher --memory-limit, fewer workers or smaller batches, before the system ends a worker.",
        ),
        Alert(
            "GristmillAcceleratorIdle",
            f"{useful} / ({there} > 0) < {IDLE_SHARE}",
            600 * factor,
            WARNING,
            "GPUs of {{ $labels.pipeline }} do useful work less than half of the time",
            "The dashboard Run shows where their seconds go; a starved stage wants more workers before it.",
        ),
    )


def _of_the_end(factor: float) -> tuple[Alert, ...]:
    return (
        Alert(
            "GristmillDriverGone",
            # Not `offset`: that fires after every run that ended well. And a driver that hangs answers all the same.
            f"(last_over_time(gristmill_run_state{{{AT_WORK}}}[{duration(900 * factor)}]) == 1)"
            f" unless on ({RUN}) gristmill_run_state"
            f" or (gristmill_run_state{{{AT_WORK}}} == 1) and on ({RUN})"
            f" (time() - gristmill_snapshot_timestamp_seconds > {STALLED_S * factor:g})",
            60 * factor,
            SEVERE,
            "The driver of {{ $labels.pipeline }} is gone, or has been silent for too long",
            "The same command continues the run. A target file it left for discovery can be removed.",
        ),
        Alert(
            "GristmillRunFailed",
            'gristmill_run_state{state="failed"} == 1',
            0,
            SEVERE,
            "The run {{ $labels.pipeline }} failed",
            "Its last lines, and `gristmill status RUN_DIR`, say why. The same command continues it.",
        ),
    )


RECORDINGS = (
    Recording(
        "gristmill:documents:rate5m",
        f"sum by ({RUN}, stage, outcome) (rate(gristmill_documents_total[5m]))",
    ),
    Recording(
        "gristmill:task_duration_seconds:p95_5m",
        f"histogram_quantile(0.95, sum by ({RUN}, stage, le) (rate(gristmill_task_duration_seconds_bucket[5m])))",
    ),
)


def duration(seconds: float) -> str:
    """A time as Prometheus writes it: whole units only.

    >>> [duration(900), duration(90), duration(0.5)]
    ['15m', '90s', '500ms']
    """
    if seconds >= 60 and seconds % 60 == 0:
        return f"{seconds / 60:.0f}m"
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{seconds * 1000:.0f}ms"


def rule_groups(factor: float = 1.0) -> dict[str, object]:
    """Return the rules in the form of the rules file."""
    return {
        "groups": [
            {
                "name": "gristmill-alerts",
                "rules": [
                    {
                        "alert": alert.name,
                        "expr": alert.expression,
                        **({"for": duration(alert.for_s)} if alert.for_s else {}),
                        "labels": {"severity": alert.severity},
                        "annotations": {"summary": alert.summary, "description": alert.advice},
                    }
                    for alert in alerts(factor)
                ],
            },
            {
                "name": "gristmill-recordings",
                "rules": [{"record": rule.name, "expr": rule.expression} for rule in RECORDINGS],
            },
        ]
    }
