"""Gather the fragments of changelog.d into CHANGELOG.md. Used by `make changelog`; `--check` only looks.

A fragment is named `<slug>.<kind>.md`. Only the fragments and CHANGELOG.md are read or written here; publishing a
release is not this script's business.
"""

import argparse
import datetime
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FRAGMENTS = ROOT / "changelog.d"
CHANGELOG = ROOT / "CHANGELOG.md"
KINDS = ("added", "changed", "fixed")
NAME = re.compile(rf"[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(KINDS)})\.md")
MARK = "<!-- releases below, newest first; written by `make changelog` -->\n"


def list_fragments(folder: Path) -> list[Path]:
    """Return every file but the README, sorted so that the changelog does not depend on the filesystem."""
    return sorted(p for p in folder.iterdir() if p.name != "README.md")


def find_faults(fragments: list[Path]) -> list[str]:
    """Return one sentence for each fragment that is badly named or empty."""
    wanted = f"<slug>.<{'|'.join(KINDS)}>.md"
    faults = [f"changelog.d: expected {wanted}; got {p.name!r}" for p in fragments if not NAME.fullmatch(p.name)]
    empty = [p for p in fragments if NAME.fullmatch(p.name) and not p.read_text(encoding="utf-8").strip()]
    return faults + [f"changelog.d/{p.name}: expected a sentence for users; got an empty file" for p in empty]


def render_release(version: str, date: datetime.date, fragments: list[Path]) -> str:
    """Return the section of one release: fragments grouped by kind, one list item each."""
    lines = [f"## {version} ({date.isoformat()})", ""]
    for kind in KINDS:
        texts = [p.read_text(encoding="utf-8").strip() for p in fragments if p.name.endswith(f".{kind}.md")]
        if texts:
            items = ["- " + text.replace("\n", "\n  ") for text in texts]
            lines += [f"### {kind.capitalize()}", "", *items, ""]
    return "\n".join(lines)


def has_release(releases: str, version: str) -> bool:
    """Whether a version has its section already."""
    return f"\n## {version} (" in releases


def read_version() -> str:
    """Return the package's version without importing the package."""
    source = (ROOT / "src" / "gristmill" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"', source, flags=re.MULTILINE)
    if found is None:
        sys.exit('src/gristmill/__init__.py: expected a line __version__ = "..."; got none')
    return found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Gather changelog.d into CHANGELOG.md.")
    parser.add_argument("--check", action="store_true", help="only verify the fragments; change nothing")
    arguments = parser.parse_args()

    fragments = list_fragments(FRAGMENTS)
    if faults := find_faults(fragments):
        sys.exit("\n".join(faults))
    if arguments.check:
        return
    if not fragments:
        sys.exit("changelog.d: expected at least one fragment; got none")

    head, mark, tail = CHANGELOG.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        sys.exit(f"CHANGELOG.md: expected the line {MARK.strip()!r}; got none")
    version = read_version()
    if has_release(tail, version):
        sys.exit(f"CHANGELOG.md: expected a version it does not have yet; got {version}: raise __version__ first")
    today = datetime.datetime.now(tz=datetime.UTC).date()
    release = render_release(version, today, fragments)
    CHANGELOG.write_text(f"{head}{mark}\n{release.rstrip()}\n{tail}", encoding="utf-8")
    for fragment in fragments:
        fragment.unlink()


if __name__ == "__main__":
    main()
