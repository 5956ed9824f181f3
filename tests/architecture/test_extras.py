"""`gristmill doctor` says of every extra what it is for; a new one is explained with the change that brings it."""

import tomllib
from pathlib import Path

from gristmill.cli.doctor import EXTRAS

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
OF_THE_PROJECT = {"dev", "docs", "heavy"}  # no stage needs these


def test_every_extra_is_explained():
    extras = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]

    assert sorted(EXTRAS) == sorted(extras.keys() - OF_THE_PROJECT)
