"""Write Grafana's dashboards: `python tools/grafana_dashboards.py` after a change here; a test compares.

The JSON is committed and shipped, so `gristmill monitoring init` needs nothing but itself. Plain data is simpler than
Grafana's builder library: what that writes does not fit its own types (docs/adr/0035), and a compiler checks ours.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

PLACE = Path(__file__).parents[1] / "src" / "gristmill" / "metrics" / "grafana"
SCHEMA = 41  # of Grafana 12.0, whose types the test compiles against
WIDTH = 24  # columns of Grafana's grid
ONE_RUN = 'pipeline="$pipeline", run="$run"'
MANY_RUNS = 'pipeline=~"$pipeline"'
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
Query = tuple[str, str]  # expression, legend


@dataclass(frozen=True)
class Panel:
    """One panel: what is asked, how it is drawn, and how much room it has."""

    title: str
    kind: str
    queries: Sequence[Query]
    help: str
    unit: str = "short"
    width: int = 12
    height: int = 8
    custom: dict[str, object] = field(default_factory=dict)  # of the kind of panel
    options: Mapping[str, object] = field(default_factory=dict)
    defaults: dict[str, object] = field(default_factory=dict)  # of every field
    instant: bool = False
    format: str = "time_series"
    transformations: Sequence[dict[str, object]] = ()

    def render(self, number: int, place: dict[str, int]) -> dict[str, object]:
        """Return the panel as Grafana has it."""
        fields = {"unit": self.unit, "custom": self.custom, **self.defaults}
        shown = {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.help,
            "gridPos": place,
            "datasource": DATASOURCE,
            "fieldConfig": {"defaults": fields, "overrides": []},
            "options": self.options,
            "targets": [
                {
                    "refId": chr(ord("A") + position),
                    "expr": expression,
                    "legendFormat": legend,
                    "instant": self.instant,
                    "range": not self.instant,
                    "format": self.format,
                    "datasource": DATASOURCE,
                }
                for position, (expression, legend) in enumerate(self.queries)
            ],
        }
        return shown | ({"transformations": list(self.transformations)} if self.transformations else {})


def lines(
    title: str,
    queries: Sequence[Query] | Query,
    help: str,
    unit: str = "short",
    *,
    stack: bool = False,
    height: int = 8,
) -> Panel:
    """Return values over time, one above the other if they add up."""
    asked = cast("list[Query]", [queries] if isinstance(queries[0], str) else queries)
    custom: dict[str, object] = (
        {"fillOpacity": 25, "stacking": {"mode": "normal", "group": "A"}} if stack else {"fillOpacity": 5}
    )
    options = {
        "legend": {"displayMode": "table", "placement": "right", "showLegend": True, "calcs": ["lastNotNull", "max"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return Panel(title, "timeseries", asked, help, unit, custom=custom, options=options, height=height)


def number(title: str, query: Query, help: str, unit: str = "short", *, width: int = 3, text: str = "auto") -> Panel:
    """Return the latest value, large."""
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": text,
        "graphMode": "area",
        "colorMode": "value",
    }
    return Panel(title, "stat", [query], help, unit, options=options, width=width, height=4)


def bars(title: str, query: Query, help: str, unit: str = "short", *, height: int = 8) -> Panel:
    """Return one bar for each series, at its latest value."""
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "displayMode": "gradient",
        "orientation": "horizontal",
        "showUnfilled": True,
        "valueMode": "color",
    }
    return Panel(title, "bargauge", [query], help, unit, options=options, instant=True, height=height)


def heat(title: str, query: Query, help: str, unit: str) -> Panel:
    """Return the buckets of a histogram over time."""
    options = {
        "calculate": False,
        "yAxis": {"unit": unit},
        "color": {
            "mode": "scheme",
            "scheme": "Oranges",
            "steps": 64,
            "exponent": 0.5,
            "fill": "dark-orange",
            "reverse": False,
        },
        "cellGap": 1,
    }
    return Panel(title, "heatmap", [query], help, unit, options=options, format="heatmap")


def throughput(labels: str) -> Iterator[Panel]:
    """How fast documents go, and which are lost on the way."""
    out = f'gristmill_documents_total{{{labels}, outcome="out"}}'
    yield lines(
        "Documents a second",
        (f"sum by (stage) (rate({out}[$__rate_interval]))", "{{stage}}"),
        "Documents that left each stage.",
        "short",
    )
    yield lines(
        "Bytes a second",
        (f"sum by (stage) (rate(gristmill_stage_input_bytes_total{{{labels}}}[$__rate_interval]))", "{{stage}}"),
        "Bytes that came to each stage.",
        "Bps",
    )
    for title, metric, about in (
        ("Bytes passed on a second", "gristmill_stage_output_bytes_total", "Bytes that went on from each stage."),
        ("Bytes dropped a second", "gristmill_dropped_bytes_total", "Bytes of documents that each stage dropped."),
        ("Bytes spilled a second", "gristmill_spilled_bytes_total", "Bytes put on disk between two segments."),
    ):
        yield lines(
            title, (f"sum by (stage) (rate({metric}{{{labels}}}[$__rate_interval]))", "{{stage}}"), about, "Bps"
        )
    yield bars(
        "Dropped, by reason",
        (f"sort_desc(sum by (stage, reason) (gristmill_dropped_documents_total{{{labels}}}))", "{{stage}}: {{reason}}"),
        "Where documents go. Together with those written and quarantined, these are all that were read.",
        height=10,
    )
    yield lines(
        "What became of documents",
        (
            f'sum by (outcome) (rate(gristmill_documents_total{{{labels}, outcome!="out"}}[$__rate_interval]))',
            "{{outcome}}",
        ),
        "Documents a second that were dropped or put into quarantine.",
        height=10,
        stack=True,
    )


def latency(labels: str) -> Iterator[Panel]:
    """How long tasks take, and how long they wait."""
    bucket = f"rate(gristmill_task_duration_seconds_bucket{{{labels}}}[$__rate_interval])"
    yield lines(
        "Time of a task",
        [
            (f"histogram_quantile({share}, sum by (stage, le) ({bucket}))", f"{{{{stage}}}} p{share * 100:.0f}")
            for share in (0.5, 0.95)
        ],
        "Half of the tasks of a stage, and nineteen of twenty, are done within this time.",
        "s",
    )
    yield heat(
        "Time of tasks",
        (f"sum by (le) (increase(gristmill_task_duration_seconds_bucket{{{labels}}}[$__rate_interval]))", "{{le}}"),
        "Tasks by how long they took, of all stages.",
        "s",
    )
    yield lines(
        "Queue",
        (f"sum by (stage) (gristmill_stage_queue_seconds{{{labels}}})", "{{stage}}"),
        "Time the present workers need for what waits. A queue that grows stands before the slowest stage.",
        "s",
    )
    yield lines(
        "Seconds since a stage came further",
        (f"time() - max by (stage) (gristmill_stage_last_progress_timestamp_seconds{{{labels}}})", "{{stage}}"),
        "The alert GristmillStageStalled looks at this.",
        "s",
    )


def workers(labels: str) -> Iterator[Panel]:
    """Who works, where the time goes, and what goes wrong."""
    yield lines(
        "Workers by state",
        (f"sum by (state) (gristmill_workers{{{labels}}})", "{{state}}"),
        "Blocked workers have results that nobody can take; idle ones have nothing to do.",
        stack=True,
    )
    yield lines(
        "Workers by stage",
        (f"sum by (stage) (gristmill_workers{{{labels}}})", "{{stage}}"),
        "Stages that run fused in one worker are counted under the first of them.",
        stack=True,
    )
    yield lines(
        "Where the time goes",
        (
            f"sum by (resource, share) (rate(gristmill_resource_seconds_total{{{labels}}}[$__rate_interval]))",
            "{{resource}} {{share}}",
        ),
        "CPUs and GPUs by what they were doing; stacked, they are all there are.",
        stack=True,
    )
    yield lines(
        "Lost and replaced workers, tasks tried again",
        [
            (
                f"sum by (cause) (increase(gristmill_worker_losses_total{{{labels}}}[$__rate_interval]))",
                "lost: {{cause}}",
            ),
            (f"sum (increase(gristmill_worker_recycles_total{{{labels}}}[$__rate_interval]))", "replaced"),
            (f"sum (increase(gristmill_task_retries_total{{{labels}}}[$__rate_interval]))", "tried again"),
        ],
        "By cause: memory, signal, timeout, exit, node.",
        stack=True,
    )
    failed = f'sum (rate(gristmill_documents_total{{{labels}, outcome="quarantined"}}[$__rate_interval]))'
    yield lines(
        "Share of documents that fail",
        (f"{failed} / (sum (rate(gristmill_read_documents_total{{{labels}}}[$__rate_interval])) > 0)", "in quarantine"),
        "The alert GristmillErrorsHigh looks at this.",
        "percentunit",
    )


def memory(labels: str) -> Iterator[Panel]:
    """Memory of the run and of its stages."""
    yield lines(
        "Memory against its limit",
        [
            (f"sum by (run) (gristmill_memory_bytes{{{labels}}})", "{{run}} used"),
            (f"sum by (run) (gristmill_memory_limit_bytes{{{labels}}})", "{{run}} limit"),
            (f"sum by (run) (gristmill_data_in_flight_bytes{{{labels}}})", "{{run}} data on the way"),
        ],
        "Of the whole run.",
        "bytes",
    )
    yield lines(
        "Memory of workers by stage",
        (f'sum by (stage) (gristmill_worker_memory_bytes{{{labels}, of="all"}})', "{{stage}}"),
        "Resident memory; stages that run fused are counted under the first of them.",
        "bytes",
        stack=True,
    )
    yield lines(
        "Largest worker by stage",
        (f'max by (stage) (gristmill_worker_memory_bytes{{{labels}, of="largest"}})', "{{stage}}"),
        "One worker far above the others has met a large document.",
        "bytes",
    )


def summary() -> Iterator[Panel]:
    """The books of one run, in large numbers."""
    run = ONE_RUN
    yield number("State", (f"gristmill_run_state{{{run}}} == 1", "{{state}}"), "What the run does now.", text="name")
    yield number(
        "Done",
        (f"gristmill_committed_input_bytes_total{{{run}}} / (gristmill_input_bytes{{{run}}} > 0)", "done"),
        "Share of the input that is in the ledger.",
        "percentunit",
    )
    yield number("Time left", (f"gristmill_run_eta_seconds{{{run}}}", "left"), "As the run itself reckons.", "s")
    yield number("Read", (f"gristmill_read_documents_total{{{run}}}", "read"), "Documents, with earlier sessions.")
    yield number("Written", (f"gristmill_written_documents_total{{{run}}}", "written"), "Documents at the end.")
    dropped = f'sum (gristmill_documents_total{{{run}, outcome="dropped"}})'
    yield number("Dropped", (dropped, "dropped"), "Documents that some stage did not want.")
    failed = f'sum (gristmill_documents_total{{{run}, outcome="quarantined"}})'
    yield number("Quarantined", (failed, "quarantined"), "Documents that some stage failed on.")
    yield number(
        "Of the optimum",
        (f"gristmill_bound_seconds{{{run}}} / (gristmill_run_elapsed_seconds{{{run}}} > 0)", "of the optimum"),
        "The least time this work could have taken on these machines, over the time it took.",
        "percentunit",
    )


def fleet() -> Iterator[Panel]:
    """All runs a server knows, side by side."""
    labels = MANY_RUNS
    yield number(
        "At work",
        (f'sum (gristmill_run_state{{{labels}, state=~"starting|running|draining"}})', "at work"),
        "Runs that are neither finished nor stopped.",
        width=6,
    )
    yield number("Failed", (f'sum (gristmill_run_state{{{labels}, state="failed"}})', "failed"), "Runs.", width=6)
    firing = 'count (ALERTS{alertname=~"Gristmill.+", alertstate="firing"}) or vector(0)'
    yield number("Alerts", (firing, "firing"), "Alerts that are firing, of all pipelines.", width=6)
    yield number("Workers", (f"sum (gristmill_workers{{{labels}}})", "workers"), "Of all runs.", width=6)
    columns = {
        "run_state": f"max by (pipeline, run, state) (gristmill_run_state{{{labels}}} == 1)",
        "done": f"max by (pipeline, run) (gristmill_committed_input_bytes_total{{{labels}}}"
        f" / (gristmill_input_bytes{{{labels}}} > 0))",
        "read": f"max by (pipeline, run) (gristmill_read_documents_total{{{labels}}})",
        "written": f"max by (pipeline, run) (gristmill_written_documents_total{{{labels}}})",
        "quarantined": f'sum by (pipeline, run) (gristmill_documents_total{{{labels}, outcome="quarantined"}})',
    }
    yield Panel(
        "Runs",
        "table",
        [(expression, name) for name, expression in columns.items()],
        "One line a run: state, share done, documents read, written and in quarantine.",
        width=24,
        instant=True,
        format="table",
        options={"showHeader": True},
        transformations=[
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {
                    "excludeByName": {"Time": True, "Value #A": True},
                    "renameByName": {
                        "Value #B": "done",
                        "Value #C": "read",
                        "Value #D": "written",
                        "Value #E": "quarantined",
                    },
                },
            },
        ],
    )
    yield lines(
        "Documents read a second",
        (
            f"sum by (pipeline, run) (rate(gristmill_read_documents_total{{{labels}}}[$__rate_interval]))",
            "{{pipeline}} {{run}}",
        ),
        "Of each run.",
        stack=True,
    )
    yield lines(
        "Memory",
        (f"sum by (pipeline, run) (gristmill_memory_bytes{{{labels}}})", "{{pipeline}} {{run}}"),
        "Of each run.",
        "bytes",
        stack=True,
    )
    yield lines(
        "Share of the optimum",
        (
            f"gristmill_bound_seconds{{{labels}}} / (gristmill_run_elapsed_seconds{{{labels}}} > 0)",
            "{{pipeline}} {{run}}",
        ),
        "The least time the work could have taken, over the time it took.",
        "percentunit",
    )
    yield lines(
        "Documents in quarantine",
        (
            f'sum by (pipeline, run) (gristmill_documents_total{{{labels}, outcome="quarantined"}})',
            "{{pipeline}} {{run}}",
        ),
        "Of each run.",
    )


def resources() -> Iterator[Panel]:
    """Machines: memory, CPUs and GPUs, and what a run does with them."""
    labels = ONE_RUN
    yield lines(
        "Memory of machines",
        (f"gristmill_node_memory_bytes{{{labels}}} / gristmill_node_memory_total_bytes{{{labels}}}", "{{node}}"),
        "Used by whomever, as a share of what the machine has.",
        "percentunit",
    )
    yield lines(
        "CPUs of machines",
        (f"rate(gristmill_node_cpu_seconds_total{{{labels}}}[$__rate_interval])", "{{node}}"),
        "How many CPUs were busy, by whomever.",
    )
    yield lines(
        "GPU memory",
        (f"gristmill_gpu_memory_bytes{{{labels}}} / gristmill_gpu_memory_total_bytes{{{labels}}}", "{{node}} {{gpu}}"),
        "Share of what each GPU has. Empty where there is no GPU, or NVML is missing.",
        "percentunit",
    )
    yield lines(
        "GPU use",
        (f"gristmill_gpu_utilization_ratio{{{labels}}}", "{{node}} {{gpu}}"),
        "Share of the last moments in which a GPU did anything.",
        "percentunit",
    )
    for resource, name in (("cpu", "CPUs"), ("gpu", "GPUs")):
        spent = f'gristmill_resource_seconds_total{{{labels}, resource="{resource}"}}'
        yield lines(
            f"What {name} did",
            (f"sum by (share) (rate({spent}[$__rate_interval]))", "{{share}}"),
            f"Seconds of {name} a second, by what they were used for.",
            stack=True,
        )
    yield lines(
        "Worker seconds by stage",
        (f"sum by (stage) (rate(gristmill_stage_process_seconds_total{{{labels}}}[$__rate_interval]))", "{{stage}}"),
        "How many workers each stage keeps busy.",
        stack=True,
    )
    yield from memory(labels)


def variables(*, one_run: bool) -> list[dict[str, object]]:
    """Return what can be chosen at the top: the server, the pipeline and, where one run is shown, which."""
    several = {} if one_run else {"multi": True, "includeAll": True, "allValue": ".*"}
    chosen = [
        {"type": "datasource", "name": "datasource", "label": "Prometheus", "query": "prometheus", "refresh": 1},
        _choice("pipeline", "label_values(gristmill_run_info, pipeline)", several),
    ]
    if one_run:
        chosen.append(_choice("run", 'label_values(gristmill_run_info{pipeline="$pipeline"}, run)', {}))
    return chosen


def _choice(name: str, query: str, more: dict[str, object]) -> dict[str, object]:
    asked = {"query": query, "refId": f"variable-{name}"}
    # Asked again when the range changes (refresh 2); the latest run first (sort 2), as its name ends in its time.
    return {
        "type": "query",
        "name": name,
        "label": name.capitalize(),
        "datasource": DATASOURCE,
        "query": asked,
        "refresh": 2,
        "sort": 2,
        **more,
    }


def dashboard(
    uid: str, title: str, help: str, rows: Mapping[str, Sequence[Panel]], *, one_run: bool
) -> dict[str, object]:
    """Return a whole dashboard: panels in rows, from left to right."""
    panels: list[dict[str, object]] = []
    top = 0
    for name, members in rows.items():
        place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
        panels.append(
            {"id": len(panels) + 1, "type": "row", "title": name, "collapsed": False, "gridPos": place, "panels": []}
        )
        top += 1
        left = height = 0
        for panel in members:
            if left + panel.width > WIDTH:
                left, top, height = 0, top + height, 0
            place = {"x": left, "y": top, "w": panel.width, "h": panel.height}
            panels.append(panel.render(len(panels) + 1, place))
            left, height = left + panel.width, max(height, panel.height)
        top += height
    return {
        "uid": uid,
        "title": title,
        "description": help,
        "tags": ["gristmill"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "timezone": "browser",
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "graphTooltip": 1,
        "templating": {"list": variables(one_run=one_run)},
        "panels": panels,
        "links": [
            {
                "title": "gristmill",
                "type": "dashboards",
                "tags": ["gristmill"],
                "asDropdown": True,
                "icon": "",
                "tooltip": "",
                "keepTime": True,
                "includeVars": False,
                "targetBlank": False,
            }
        ],
    }


def dashboards() -> dict[str, dict[str, object]]:
    """Return every dashboard by the name of its file."""
    run = {
        "The books": list(summary()),
        "Throughput and funnel": list(throughput(ONE_RUN)),
        "Latency and queues": list(latency(ONE_RUN)),
        "Workers and errors": list(workers(ONE_RUN)),
        "Memory": list(memory(ONE_RUN)),
    }
    return {
        "run.json": dashboard(
            "gristmill-run", "gristmill: run", "One run, from its books to its workers.", run, one_run=True
        ),
        "fleet.json": dashboard(
            "gristmill-fleet",
            "gristmill: fleet of runs",
            "All runs side by side.",
            {"Runs": list(fleet())},
            one_run=False,
        ),
        "resources.json": dashboard(
            "gristmill-resources",
            "gristmill: resources",
            "Machines, CPUs, GPUs and memory of one run.",
            {"Machines": list(resources())},
            one_run=True,
        ),
    }


def render(content: dict[str, object]) -> str:
    """Return the text of the file."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main(place: Path = PLACE) -> None:
    """Write the files."""
    place.mkdir(parents=True, exist_ok=True)
    for name, content in dashboards().items():
        (place / name).write_text(render(content), encoding="utf-8")


if __name__ == "__main__":
    main()
