"""Alerts and recording rules speak of metrics that exist, and every time in them can be shortened."""

import re

import pytest

from gristmill.metrics.catalog import METRICS
from gristmill.metrics.rules import RECORDINGS, alerts, duration

SUFFIXES = ("_bucket", "_sum", "_count")


def metrics_in(expression):
    """Return names of metrics in an expression, histograms by the name the catalog has."""
    found = re.findall(r"\bgristmill_[a-z_]+", expression)
    return {next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end)), name) for name in found}


@pytest.mark.parametrize("rule", [*alerts(), *RECORDINGS], ids=lambda rule: rule.name)
def test_a_rule_is_about_metrics_of_the_catalog_and_their_labels(rule):
    names = metrics_in(rule.expression)
    assert names
    assert names <= METRICS.keys()
    known = {label for name in names for label in METRICS[name].labels} | {"pipeline", "run", "le"}
    for labels in re.findall(r"\b(?:on|by) \(([^)]*)\)", rule.expression):
        assert set(labels.split(", ")) <= known


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_what_an_alert_says_uses_only_labels_there_are(alert):
    labels = {label for name in metrics_in(alert.expression) for label in METRICS[name].labels} | {"pipeline", "run"}

    assert set(re.findall(r"\$labels\.(\w+)", alert.summary)) <= labels


def test_a_factor_shortens_every_time():
    def times(factor):
        text = " ".join(f"{alert.expression} for {duration(alert.for_s)}" for alert in alerts(factor))
        return re.findall(r"\[[^]]+\]|_seconds > [0-9.]+\)| for [1-9]\w*", text)

    usual, short = times(1.0), times(0.01)
    assert len(usual) == len(short)
    assert not set(usual) & set(short)


@pytest.mark.parametrize(("seconds", "text"), [(900, "15m"), (90, "90s"), (6, "6s"), (1.2, "1200ms"), (0, "0s")])
def test_a_time_is_written_as_prometheus_reads_it(seconds, text):
    assert duration(seconds) == text
