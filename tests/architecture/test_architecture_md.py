"""ARCHITECTURE.md is a map of what is there: every package has its line, and only one."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
ROOT = REPOSITORY / "src" / "gristmill"
PACKAGES = sorted({path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")} - {"."})
TEXT = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")


def mentioned_folders() -> set[str]:
    """Return every folder the text names in code quotes with a closing slash, as in `stages/text/`."""
    return {folder.rstrip("/") for folder in re.findall(r"`((?:\w+/)+)`", TEXT)}


def test_every_package_is_on_the_map():
    assert [package for package in PACKAGES if package not in mentioned_folders()] == []


def test_every_line_of_the_map_is_of_a_package_of_its_own():
    lines = [folder.rstrip("/") for folder in re.findall(r"^\| `((?:\w+/)+)` \|", TEXT, flags=re.MULTILINE)]
    assert sorted(lines) == sorted({folder for folder in lines if (ROOT / folder).is_dir()})
