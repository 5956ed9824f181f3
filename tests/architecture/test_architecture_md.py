"""ARCHITECTURE.md is a map of what is there: no package may be missing from it."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ROOT = REPOSITORY / "src" / "gristmill"
PACKAGES = sorted({path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")} - {"."})


def mentioned_folders() -> set[str]:
    """Return every folder the text names in code quotes with a closing slash, as in `stages/text/`."""
    text = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return {folder.rstrip("/") for folder in re.findall(r"`((?:\w+/)+)`", text)}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_on_the_map(package):
    assert package in mentioned_folders(), f"ARCHITECTURE.md: expected a mention of `{package}/`; got none"
