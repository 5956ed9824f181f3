"""The installed command exposes a run where it is asked to, and sets up its servers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
GRISTMILL = str(Path(sys.executable).with_name("gristmill"))


def gristmill(*arguments, cwd):
    return subprocess.run([GRISTMILL, *arguments], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "raw").mkdir()
    lines = [json.dumps({"id": n, "text": "A word and another one. " * n}) for n in range(20)]
    (tmp_path / "raw" / "a.jsonl").write_text("\n".join([*lines, lines[3], "broken"]) + "\n")
    return tmp_path


def numbers(text):
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    return {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in samples}


def test_a_file_says_what_the_result_says(corpus):
    done = gristmill(
        *("run", "basic-english", "-i", "raw", "-o", "out", "--metrics-file", "run.prom", "--metrics-sd", "targets"),
        *("--json", "--workers", "1"),
        cwd=corpus,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    text = (corpus / "run.prom").read_text()

    assert 'state="finished"} 1.0' in text
    assert numbers(text)["gristmill_read_documents_total"] == told["read"] == 22
    assert numbers(text)["gristmill_written_documents_total"] == told["written"]
    assert "metrics at http://127.0.0.1:" in done.stderr
    assert list((corpus / "targets").iterdir()) == []


@pytest.mark.heavy  # it compiles what it counts with
def test_every_run_of_a_workflow_is_in_the_file(corpus):
    done = gristmill(
        *("dedup", "exact", "-i", "raw", "-o", "out", "--metrics-file", "dedup.prom", "--quiet", "--workers", "1"),
        cwd=corpus,
    )
    assert done.returncode == 0, done.stderr
    states = [line for line in (corpus / "dedup.prom").read_text().splitlines() if 'state="finished"' in line]

    assert len(states) >= 1
    assert all(line.endswith(" 1.0") for line in states)


def test_a_mistake_is_said_before_anything_is_read(corpus):
    done = gristmill("run", "basic-english", "-i", "raw", "-o", "out", "--metrics-file", "no/such/run.prom", cwd=corpus)

    assert done.returncode == 2
    assert "--metrics-file: expected a file that can be written" in done.stderr
    assert not (corpus / "out").exists()


def test_monitoring_init_says_what_to_do_next(tmp_path):
    done = gristmill("monitoring", "init", "there", "--prometheus-port", "19090", "--run-host", "far", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert f"--metrics-sd {tmp_path}/there/targets" in done.stdout
    assert "far:9095" in (tmp_path / "there" / "prometheus.yml").read_text()
