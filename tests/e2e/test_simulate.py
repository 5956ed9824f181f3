"""`gristmill simulate` answers on the command line."""

import json
import subprocess
import sys

import pytest

GRISTMILL = [sys.executable, "-c", "from gristmill.cli.main import main; main()"]
SPEC = "items: 100\nnodes: {cpus: 4}\nstages:\n  - {name: a, service_s: 2}\n  - {name: b, service_s: 2}\n"


def run(*arguments):
    return subprocess.run([*GRISTMILL, "simulate", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_it_prints_the_result_in_words_and_as_json(tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)

    assert "100 items in" in run(str(spec)).stdout
    document = json.loads(run(str(spec), "--json").stdout)
    assert document["bound_s"] == 100.0
    assert document["of_bound"] > 0.8


@pytest.mark.slow
def test_mistakes_are_user_mistakes(tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.replace("service_s", "service"))
    done = run(str(spec))

    assert done.returncode == 2
    assert "did you mean 'service_s'" in done.stderr
    assert run(str(tmp_path / "none.yaml")).returncode == 2
