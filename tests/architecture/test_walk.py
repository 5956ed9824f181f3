"""A newcomer follows one document in an hour: the way of one touches few files (`tools/walk.py` prints it)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WALK = Path(__file__).parents[2] / "tools" / "walk.py"


@pytest.mark.slow
def test_one_document_passes_through_few_files():
    told = subprocess.run([sys.executable, WALK, "--json"], capture_output=True, text=True, check=True)
    walk = json.loads(told.stdout)

    assert walk["run"]["files"] <= 60
    assert walk["worker"]["files"] <= 25
