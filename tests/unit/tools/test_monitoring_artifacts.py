"""What is generated from the catalog and committed is what the code writes now."""

import re

import pytest
from tools import grafana_dashboards, metrics_reference

from gristmill.metrics.catalog import METRICS
from gristmill.metrics.monitoring_files import dashboards


def expressions(dashboard):
    """Yield title and expression of every query of a dashboard."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def test_the_page_of_metrics_is_what_the_catalog_says():
    assert metrics_reference.PLACE.read_text(encoding="utf-8") == metrics_reference.render(), "run make docs"


def test_the_dashboards_shipped_are_what_the_script_writes():
    made = {name: grafana_dashboards.render(content) for name, content in grafana_dashboards.dashboards().items()}

    assert dashboards() == made, "run make docs"


@pytest.mark.parametrize("name", sorted(grafana_dashboards.dashboards()))
def test_a_dashboard_asks_only_for_metrics_of_the_catalog_and_their_labels(name):
    for title, expression in expressions(grafana_dashboards.dashboards()[name]):
        for metric, labels in re.findall(r"\b(gristmill_[a-z_]+)\{([^}]*)\}", expression):
            known = METRICS[metric.removesuffix("_bucket")]
            asked = set(re.findall(r"(\w+)(?:=~|!=|=)", labels))
            assert asked <= {"pipeline", "run", *known.labels}, title
        assert set(re.findall(r"\bgristmill_[a-z_]+", expression)) <= {
            *METRICS,
            "gristmill_task_duration_seconds_bucket",
        }, title


def test_every_metric_of_the_catalog_is_on_a_dashboard_or_in_an_alert():
    from gristmill.metrics.rules import alerts

    asked = " ".join(
        expression for content in grafana_dashboards.dashboards().values() for _, expression in expressions(content)
    ) + " ".join(alert.expression for alert in alerts())
    unseen = {name for name in METRICS if name not in asked}

    assert unseen == {
        "gristmill_run_info",  # the choice of run at the top of a dashboard asks for it
        "gristmill_run_start_timestamp_seconds",
        "gristmill_partitions",
        "gristmill_committed_partitions_total",
        "gristmill_created_documents_total",
    }


@pytest.mark.parametrize("name", sorted(grafana_dashboards.dashboards()))
def test_panels_do_not_lie_on_each_other(name):
    taken = set()
    for panel in grafana_dashboards.dashboards()[name]["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
