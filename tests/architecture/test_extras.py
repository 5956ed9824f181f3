"""What is installed with gristmill is what is listed here, and `gristmill doctor` says of every extra what it is for.

A new package, or a new extra, is explained with the change that brings it.
"""

import re
import tomllib
from pathlib import Path

from gristmill.cli.doctor import EXTRAS

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
OF_THE_PROJECT = {"dev", "docs", "heavy"}  # no stage needs these
# What `pip install gristmill` brings, without the versions. Of these only prometheus-client is for watching runs.
CORE = {
    *("cloudpickle", "fsspec", "ftfy", "msgspec", "numba", "numpy", "pandas", "prometheus-client", "psutil", "pyarrow"),
    *("pyyaml", "rich", "typer", "xxhash"),
}


def test_the_core_needs_these_packages_and_no_other():
    needed = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]

    assert sorted(re.split(r"[^\w-]", each)[0] for each in needed) == sorted(CORE)


def test_every_extra_is_explained():
    extras = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]

    assert sorted(EXTRAS) == sorted(extras.keys() - OF_THE_PROJECT)
