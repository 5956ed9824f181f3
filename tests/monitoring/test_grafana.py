"""Grafana's own types accept the dashboards. No Grafana server runs here; what they ask is asked of Prometheus."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gristmill.metrics.monitoring_files import dashboards

pytestmark = [pytest.mark.heavy, pytest.mark.slow, pytest.mark.timeout(600)]
# A value of an enumeration is written by its text in JSON; everything else is as the types say.
TYPES = """
import type { Dashboard } from '@grafana/schema';
type Json<T> = T extends string ? `${T}` : T extends (infer U)[] ? Json<U>[]
  : T extends object ? { [K in keyof T]: Json<T[K]> } : T;
"""
# Kind of panel -> where its types are. The dashboard's own type takes anything as options of a panel.
KINDS = {
    "timeseries": "timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.js",
    "stat": "stat/panelcfg/x/StatPanelCfg_types.gen.js",
    "bargauge": "bargauge/panelcfg/x/BarGaugePanelCfg_types.gen.js",
    "heatmap": "heatmap/panelcfg/x/HeatmapPanelCfg_types.gen.js",
    "table": "table/panelcfg/x/TablePanelCfg_types.gen.js",
}


def errors_of(tmp_path, source):
    """Return what the compiler says of a file, in lines."""
    node = Path(sys.prefix) / "node" / "node_modules"
    if not (tmp_path / "node_modules").exists():
        (tmp_path / "node_modules").symlink_to(node)
    (tmp_path / "dashboards.ts").write_text(source, encoding="utf-8")
    options = ["--strict", "--noEmit", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext"]
    command = ["node", str(node / "typescript/bin/tsc"), *options, "dashboards.ts"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()


def source_of(texts):
    """Return a program that is well typed if every dashboard, and the options of every panel, is."""
    lines = [TYPES]
    for kind, place in KINDS.items():
        names = f"Options as {kind}Options" + (", FieldConfig" if kind == "timeseries" else "")
        lines.append(f"import type {{ {names} }} from '@grafana/schema/dist/esm/raw/composable/{place}';")
    for number, text in enumerate(texts):
        lines.append(f"export const dashboard{number}: Json<Dashboard> = {text};")
        for panel in json.loads(text)["panels"]:
            if panel["type"] != "row":
                name = f"options{number}x{panel['id']}"
                options = json.dumps(panel["options"])
                lines.append(f"export const {name}: Json<Partial<{panel['type']}Options>> = {options};")
            if panel["type"] == "timeseries":
                custom = json.dumps(panel["fieldConfig"]["defaults"]["custom"])
                lines.append(f"export const fields{number}x{panel['id']}: Json<FieldConfig> = {custom};")
    return "\n".join(lines)


def test_the_dashboards_are_what_grafana_calls_one(tmp_path):
    assert errors_of(tmp_path, source_of(dashboards().values())) == []


MISTAKES = {
    '"refresh": "10s"': '"refresh": 10',
    '"collapsed": false': '"collapsed": "no"',
    '"textMode": "name"': '"textMode": "nome"',
    '"type": "datasource"': '"type": "datasauce"',
}


def test_a_mistake_would_be_found(tmp_path):
    text = dashboards()["run.json"]
    source = source_of([text.replace(old, new, 1) for old, new in MISTAKES.items()])
    found = errors_of(tmp_path, source)
    lines = source.splitlines()
    begins = [number for number, line in enumerate(lines, 1) if line.startswith("export const dashboard")]
    places = [int(error.partition("(")[2].partition(",")[0]) for error in found if error.startswith("dashboards.ts(")]

    assert {sum(begin <= place for begin in begins) for place in places} == {1, 2, 3, 4}
