"""Write docs/reference/metrics.md from the catalog and the rules; `make docs` calls it, and a test compares."""

import re
from pathlib import Path

from gristmill.metrics.catalog import BUCKET_BOUNDS, CATALOG, MAX_REASONS, RUN_LABELS, STATES
from gristmill.metrics.rules import RECORDINGS, alerts, duration

PLACE = Path(__file__).parents[1] / "docs" / "reference" / "metrics.md"

HEAD = f"""# Metrics

*Made by `tools/metrics_reference.py` from `gristmill/metrics/catalog.py` and `rules.py`. How to use them:
[the guide](../guide/monitoring.md).*

Every series has the labels {" and ".join(f"`{label}`" for label in RUN_LABELS)}: the name of the pipeline, and
the first eight letters of the plan's fingerprint with the time the session began. `info` is exposed as a gauge that is
always 1. States of a run are {", ".join(f"`{state}`" for state in STATES)}.
A stage has at most {MAX_REASONS} reasons by name. The
histogram has the upper bounds {", ".join(f"{bound:g}" for bound in BUCKET_BOUNDS)} seconds. What does not last is not
exposed any more once a run has ended, and neither pushed to a gateway nor left in a file.

| metric | kind | labels besides | lasts | meaning |
|---|---|---|---|---|
"""

ALERTS = """
## Alerts

All of them are in `rules/gristmill.yml`, which `gristmill monitoring init` writes.

"""

RECORDED = """## Recording rules

| name | expression |
|---|---|
"""


def render() -> str:
    """Return the text of the page."""
    rows = [
        f"| `{metric.name}` | {metric.kind} | {', '.join(f'`{label}`' for label in metric.labels) or '–'} | "
        f"{'yes' if metric.lasts else 'no'} | {_cell(metric.help)} |\n"
        for metric in CATALOG
    ]
    told = [
        f"### {alert.name}\n\n{_plain(alert.summary)}. {alert.advice}\n\nSeverity {alert.severity}"
        f"{f', after {duration(alert.for_s)}' if alert.for_s else ''}:\n\n    {alert.expression}\n\n"
        for alert in alerts()
    ]
    recorded = [f"| `{rule.name}` | `{_cell(rule.expression)}` |\n" for rule in RECORDINGS]
    return "".join([HEAD, *rows, ALERTS, *told, RECORDED, *recorded])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _plain(summary: str) -> str:
    """The text of an alert without a server's placeholders.

    >>> _plain("Stage {{ $labels.stage }} of {{ $labels.pipeline }} stands still")
    'Stage STAGE of PIPELINE stands still'
    """
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: found[1].upper(), summary)


def main() -> None:
    """Write the page."""
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    PLACE.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
