"""In a notebook a run is one output of its cell that is replaced as the run goes on, and ends with its summary."""

import json

import pytest

pytestmark = [pytest.mark.heavy, pytest.mark.slow]

DEADLINE_S = 120

CELL = """
import os
import msgspec
from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.metrics.snapshot import RunSnapshot
import gristmill.metrics.screens as screens

# A table from the first snapshot on: the run is over in less than the second it usually waits.
msgspec.structs.force_setattr(screens.IN_A_PROGRAM, "table_s", 0.0)
result = Pipeline("demo", stages=[JsonlReader("raw/"), JsonlWriter("out/")]).run(LocalExecutor(num_workers=1))
"""


@pytest.fixture
def kernel(tmp_path):
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path), startup_timeout=DEADLINE_S)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def outputs(client, code):
    """What a browser would be told to show for one cell."""
    shown = []
    reply = client.execute_interactive(code, timeout=DEADLINE_S, output_hook=shown.append)
    assert reply["content"]["status"] == "ok", reply["content"]
    return shown


def test_a_cell_shows_one_table_and_the_summary(kernel, tmp_path):
    (tmp_path / "raw").mkdir()
    for part in range(20):
        lines = [json.dumps({"id": n, "text": f"text {n}"}) for n in range(50)]
        (tmp_path / "raw" / f"{part}.jsonl").write_text("\n".join(lines) + "\n")
    shown = outputs(kernel, CELL)
    tables = [m["content"] for m in shown if m["msg_type"] in ("display_data", "update_display_data")]
    kinds = [m["msg_type"] for m in shown]
    said = "".join(m["content"]["text"] for m in shown if m["msg_type"] == "stream")

    assert kinds.count("display_data") == 1, "one output, replaced and not repeated"
    assert "jsonl_reader" in tables[0]["data"]["text/html"]
    assert len({table["transient"]["display_id"] for table in tables}) == 1
    assert "finished" in tables[-1]["data"]["text/html"]
    assert "1,000  documents read" in said


def test_a_quiet_cell_shows_nothing(kernel, tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.jsonl").write_text('{"id": 1, "text": "x"}\n')
    shown = outputs(kernel, CELL.replace("num_workers=1)", "num_workers=1), quiet=True"))

    assert [m["msg_type"] for m in shown if m["msg_type"] in ("stream", "display_data")] == []
