"""`gristmill models`, from fetching on a machine with network to checking on one without."""

import json
import os
import subprocess
import sys

import pytest
from tests import hub_double

from gristmill.testing.tiny_models import write_tiny_classifier

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NAME = "tests/tiny-classifier"


def gristmill(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "gristmill", "models", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_DISABLE_XET": "1", **{name: str(value) for name, value in environment.items()}},
    )


def test_a_model_is_fetched_found_checked_and_found_changed(tmp_path):
    published = write_tiny_classifier(tmp_path / "published")
    cache, plain = tmp_path / "hub", tmp_path / "plain"
    with hub_double.running({NAME: {path.name: path.read_bytes() for path in published.iterdir()}}) as hub:
        network = {"HF_HUB_CACHE": cache, "HF_ENDPOINT": hub.endpoint}
        fetched = gristmill("fetch", NAME, **network)
        taken = gristmill("fetch", NAME, "--to", plain, **network)
        missing = gristmill("fetch", "tests/none", **network)
    here = {"HF_HUB_CACHE": cache, "GRISTMILL_OFFLINE": "1"}

    assert (fetched.returncode, taken.stdout) == (0, f"{plain}\n"), fetched.stderr
    assert gristmill("where", NAME, **here).stdout == fetched.stdout
    listed = {each["model"]: each for each in json.loads(gristmill("list", "--json", **here).stdout)}
    assert listed[NAME]["directory"] == fetched.stdout.strip()
    assert listed["nvidia/quality-classifier-deberta"]["directory"] is None
    assert listed["nvidia/quality-classifier-deberta"]["used_by"] == "QualityClassifier"
    assert gristmill("check", NAME, plain, **here).stdout == f"{NAME}: as fetched\n{plain}: as fetched\n"

    (plain / "model.onnx").write_bytes(b"something else")
    changed = gristmill("check", NAME, plain, **here)
    assert (changed.returncode, changed.stdout) == (1, f"{NAME}: as fetched\n{plain}: CHANGED model.onnx\n")
    assert missing.returncode == 2
    assert "expected a model tests/none on the hub; found none" in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["where", "a/b"],
            "gristmill models where: expected the weights of a/b in the hub cache; found none, and offl",
        ),
        (
            ["fetch", "a/b"],
            "gristmill models fetch: expected the weights of a/b in the hub cache; found none, and offl",
        ),
        (["fetch", "a", "--to", "x"], "gristmill models fetch: expected a hub id OWNER/NAME for --to; got 'a'"),
        (["fetch", "a/b", "--runtime", "tf"], "--runtime: expected onnx or torch; got 'tf'"),
        (
            ["check", "nowhere"],
            "gristmill models check: expected a directory, 'package:NAME' or a hub id OWNER/NAME; got",
        ),
    ],
    ids=["where", "fetch", "to", "runtime", "check"],
)
def test_mistakes_are_told(arguments, message, tmp_path):
    done = gristmill(*arguments, HF_HUB_CACHE=tmp_path, GRISTMILL_OFFLINE="1")

    assert done.returncode == 2
    assert message in done.stderr
