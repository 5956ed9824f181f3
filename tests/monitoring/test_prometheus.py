"""A real Prometheus server scrapes real runs: it stores what the books say, every panel has data, alerts fire when due.

Alerts take a fraction of their usual time here: every time in them is multiplied by a factor where they are written.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.monitoring.gated_run import DOCUMENTS, books, gated_pipeline, let, write_input
from tests.monitoring.servers import PrometheusServer, wait_for
from tests.run_snapshots import run_snapshot, stage_snapshot

REPOSITORY = Path(__file__).parents[2]
pytestmark = [pytest.mark.heavy, pytest.mark.slow, pytest.mark.timeout(600)]
QUICK = 0.01  # of an alert's times: five minutes are three seconds
PARTITIONS = 8


@contextlib.contextmanager
def gated_run(directory, server, *arguments):
    """A run in a process of its own; killed at the end if it is still there."""
    command = [sys.executable, "-m", "tests.monitoring.gated_run", directory, server.targets, *map(str, arguments)]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def committed(server, pipeline="gated"):
    return server.value(f'gristmill_committed_partitions_total{{pipeline="{pipeline}"}}') or 0


def kill_a_worker(driver):
    """Kill one of the processes whose parent, the fork server, is the driver's child."""
    server = next(child for child in psutil.Process(driver).children() if child.children())
    server.children()[0].kill()


def filled_in(expression, pipeline):
    """Return an expression of a dashboard as Grafana would ask it, for the latest run of a pipeline."""
    expression = expression.replace('run="$run"', 'run=~".+"').replace("$__rate_interval", "1m")
    return expression.replace("$pipeline", pipeline)


def panels():
    from gristmill.metrics.monitoring_files import dashboards

    for name, text in dashboards().items():
        for panel in json.loads(text)["panels"]:
            for target in panel.get("targets", []):
                yield f"{name}: {panel['title']}", target["expr"]


def stored_books(server, pipeline):
    """Return the last a server has heard of the counts of a run that has ended, in the form of `books`."""

    def last(name, labels=""):
        return server.query(f'last_over_time({name}{{pipeline="{pipeline}"{labels}}}[1h])')

    # A run ends when its last answer is fetched; the server stores that a moment later, all of it at once.
    wait_for(lambda: [value for _, value in last("gristmill_run_state", ',state="finished"')] == [1], "the last answer")
    stages = {}
    for labels, value in last("gristmill_documents_total"):
        stages.setdefault(labels["stage"], {"dropped": {}})[labels["outcome"]] = value
    reasons = {name: {} for name in stages}
    for labels, value in last("gristmill_dropped_documents_total"):
        reasons[labels["stage"]][labels["reason"]] = value
    for name, stage in stages.items():
        assert stage["dropped"] == sum(reasons[name].values())
        stage["dropped"] = reasons[name]
    ((_, read),), ((_, written),) = last("gristmill_read_documents_total"), last("gristmill_written_documents_total")
    return {"read": read, "written": written, "stages": stages}


def test_a_server_stores_what_the_books_say_and_every_panel_has_data(tmp_path):
    from gristmill.metrics.exporter import Exporter, MetricsOptions

    write_input(tmp_path, PARTITIONS)
    with (
        PrometheusServer.started(tmp_path / "monitoring") as server,
        Exporter(MetricsOptions(discovery=server.targets, linger_s=0), say=lambda _: None) as recorded,
        gated_run(tmp_path, server) as run,
    ):
        let(tmp_path, 2)
        wait_for(lambda: committed(server) == 2, "two partitions")
        let(tmp_path, 5)
        wait_for(lambda: committed(server) == 5, "five partitions")
        seconds = iter(range(10_000))

        def has_data(expression):
            # What wants a GPU is asked of a snapshot with GPUs, whose numbers go on as those of a run do. So are the
            # time left, which a run that is held cannot say, and what is spilled, where this run spills nothing.
            now = 100.0 * next(seconds)
            spent = {"useful": now, "starved": now}
            recorded(run_snapshot([stage_snapshot()], machines=2, gpus=2, name="gpus", resource_seconds={"gpu": spent}))
            of_the_snapshot = any(part in expression for part in ("gpu", "_eta_", "_spilled_"))
            return server.query(filled_in(expression, "gpus" if of_the_snapshot else "gated"))

        for title, expression in panels():
            wait_for(lambda expression=expression: has_data(expression), f"data for {title}: {expression}")
        kill_a_worker(run.pid)
        wait_for(lambda: server.value('sum(gristmill_worker_losses_total{pipeline="gated"})'), "a worker that was lost")
        let(tmp_path, PARTITIONS)
        told, _ = run.communicate()
        assert run.returncode == 0
        said = json.loads(told)
        assert stored_books(server, "gated") == said

    report = json.loads((tmp_path / "out" / ".gristmill" / "report.json").read_text())
    assert said["read"] == PARTITIONS * DOCUMENTS == report["read"]
    dropped = {name: stage["dropped"] for name, stage in said["stages"].items() if stage["dropped"]}
    failed = sum(stage["quarantined"] for stage in said["stages"].values())
    assert (report["written"], report["dropped"], report["quarantined"]) == (said["written"], dropped, failed)
    assert said["read"] == said["written"] + sum(sum(reasons.values()) for reasons in dropped.values()) + failed


def targets_of(server, job):
    return [target for target in server.ask("targets")["activeTargets"] if target["scrapePool"] == job]


@pytest.mark.cluster
@pytest.mark.xdist_group("ray")
def test_a_run_on_a_ray_cluster_of_two_nodes_is_scraped_at_its_driver(ray_cluster, tmp_path):
    from tests.ray_cluster import NODE

    from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
    from gristmill.metrics.exporter import MetricsOptions

    second = ray_cluster.add_node(**NODE)
    write_input(tmp_path, PARTITIONS)
    let(tmp_path, 1)
    try:
        ray_dir = f"{os.environ['RAY_TMPDIR']}/ray"
        with PrometheusServer.started(tmp_path / "monitoring", ray_dir=ray_dir) as server:
            wait_for(lambda: targets_of(server, "ray"), "Ray's own targets, which Ray tells of in a file")

            def look(snapshot):
                if len(server.query("count by (node) (gristmill_node_memory_bytes)")) == 2:
                    let(tmp_path, PARTITIONS)

            done = gated_pipeline(tmp_path).run(
                RayActorPoolExecutor(show_progress=False),
                max_quarantined=None,
                observer=look,
                quiet=True,
                metrics=MetricsOptions(discovery=server.targets, linger_s=120),
            )
            assert stored_books(server, "gated") == books(done)
    finally:
        ray_cluster.remove_node(second)


def test_a_stage_that_stands_still_and_then_a_driver_that_is_killed_are_told(tmp_path):
    write_input(tmp_path, PARTITIONS)
    with PrometheusServer.started(tmp_path / "monitoring", factor=QUICK) as server:
        with gated_run(tmp_path, server):
            let(tmp_path, 1)
            wait_for(lambda: server.firing(alertname="GristmillStageStalled", pipeline="gated"), "a stalled stage")
            assert server.firing(alertname="GristmillDriverGone") == []
        wait_for(lambda: server.firing(alertname="GristmillDriverGone", pipeline="gated"), "a driver that is gone")
        (left,) = server.targets.iterdir()
        assert re.fullmatch(r"gristmill-127\.0\.0\.1-\d+-\d+\.json", left.name)


def test_documents_that_fail_are_told(tmp_path):
    partitions = 400
    write_input(tmp_path, partitions)
    with PrometheusServer.started(tmp_path / "monitoring", factor=QUICK) as server, gated_run(tmp_path, server) as run:

        def fires():
            # Some at a time, as the server sees them done, so that some fail as long as it takes. What has failed waits
            # for its second try behind what workers were given meanwhile: that needs room too.
            let(tmp_path, int(committed(server)) + 8)
            return server.firing(alertname="GristmillErrorsHigh", pipeline="gated")

        wait_for(fires, "documents that fail")
        assert run.poll() is None


def test_memory_that_is_nearly_used_up_is_told(tmp_path):
    write_input(tmp_path, 2)
    with (
        PrometheusServer.started(tmp_path / "monitoring", factor=QUICK) as server,
        gated_run(tmp_path, server, 600 << 20, "700MB"),
    ):
        wait_for(lambda: server.value('gristmill_run_state{state="running"}'), "a run")
        used = 'gristmill_memory_bytes{pipeline="gated"} / gristmill_memory_limit_bytes'
        wait_for(lambda: (server.value(used) or 0) > 0.9, "memory in use")
        wait_for(
            lambda: [
                labels
                for labels in server.firing(alertname="GristmillMemoryHigh", pipeline="gated")
                if "node" not in labels
            ],
            "memory that is nearly used up",
        )


def test_no_alert_fires_for_runs_that_end_well_however_short(tmp_path):
    with PrometheusServer.started(tmp_path / "monitoring", factor=0.1) as server:
        for number, partitions in enumerate((1, 1, PARTITIONS)):
            place = tmp_path / str(number)
            write_input(place, partitions)
            let(place, partitions)
            with gated_run(place, server) as run:
                assert run.wait() == 0
        # A driver would be said to be gone six seconds after its end.
        server.wait_for_evaluations(15)

        assert list(server.targets.iterdir()) == []
        # Other programs may fill this machine's memory, and every tenth document fails on purpose.
        others = [labels for labels in server.firing() if "node" not in labels]
        assert {labels["alertname"] for labels in others} <= {"GristmillErrorsHigh"}


def test_no_alert_at_all_fires_for_runs_without_errors_that_are_shorter_than_a_scrape_interval(tmp_path):
    """One has nearly always ended before the first scrape; of the other the server hears, then not before its end."""
    interval_s, unseen, seen = 10, tmp_path / "unseen", tmp_path / "seen"
    for place in (unseen, seen):
        write_input(place, 2, poison=False)
    state = 'last_over_time(gristmill_run_state{state="%s"}[1h])'
    with PrometheusServer.started(tmp_path / "monitoring", factor=0.1, interval_s=interval_s) as server:
        let(unseen, 2)
        with gated_run(unseen, server) as run:
            assert run.wait() == 0
        with gated_run(seen, server) as run:
            wait_for(lambda: 1 in {value for _, value in server.query(state % "running")}, "a run that is heard of")
            let(seen, 2)
            assert run.wait() == 0
        server.wait_for_evaluations(15)  # a driver would be said to be gone six seconds after its end

        assert {value for _, value in server.query(state % "finished")} == {1}
        reports = [json.loads((place / "out" / ".gristmill" / "report.json").read_text()) for place in (unseen, seen)]
        assert reports[0]["wall_s"] < interval_s
        assert [report["quarantined"] for report in reports] == [0, 0]
        # Of the alerts only those about a node are not about these runs: other programs may fill the machine's memory.
        assert [labels for labels in server.firing() if "node" not in labels] == []
