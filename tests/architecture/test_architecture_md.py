"""ARCHITECTURE.md is a map of what is there: no package may be missing from it."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
ROOT = REPOSITORY / "src" / "gristmill"
PACKAGES = sorted({path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")} - {"."})


def mentioned_folders() -> set[str]:
    """Return every folder the text names in code quotes with a closing slash, as in `stages/text/`."""
    text = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return {folder.rstrip("/") for folder in re.findall(r"`((?:\w+/)+)`", text)}


def test_every_package_is_on_the_map():
    assert [package for package in PACKAGES if package not in mentioned_folders()] == []
