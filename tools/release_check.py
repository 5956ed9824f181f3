"""Whether a commit can be released: built twice with the same bytes, installed and run on every Python it is for.

    make release-check

Leaves in dist the wheel and the source archive, `licences.md` and a bill of materials (CycloneDX). A Python that this
machine does not have is named and not checked.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bill_of_materials import write_bill
from first_hour import README, REPOSITORY, Environment, run_snippets, timed

MINORS = (11, 12, 13)
DIST = REPOSITORY / "dist"


def main() -> None:
    """Check everything; the first thing that is wrong ends it."""
    epoch = _git("log", "-1", "--format=%ct")
    os.environ["SOURCE_DATE_EPOCH"] = epoch
    with tempfile.TemporaryDirectory(prefix="release-check-") as made:
        root = Path(made)
        with timed("build, from a copy of the commit"):
            first = build(root / "first")
        with timed("build again, elsewhere"):
            second = build(root / "somewhere-else")
        compare(first, second)
        DIST.mkdir(exist_ok=True)
        for path in first:
            shutil.copy(path, DIST)
        [wheel] = [path for path in first if path.suffix == ".whl"]
        checked = [minor for minor in MINORS if check_on(minor, wheel, root)]
    if not checked:
        raise SystemExit("expected at least one Python to try the wheel with; got none")
    print("checked on Python " + ", ".join(f"3.{minor}" for minor in checked))


def build(directory: Path) -> list[Path]:
    """Build the commit in a directory of its own; return the wheel and the source archive."""
    directory.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=REPOSITORY, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=directory, input=archive, check=True)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", "dist"], cwd=directory, check=True)
    return sorted((directory / "dist").iterdir())


def compare(first: list[Path], second: list[Path]) -> None:
    """Refuse builds that differ."""
    for one, other in zip(first, second, strict=True):
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, other)]
        if one.name != other.name or digests[0] != digests[1]:
            raise SystemExit(
                f"expected the same bytes from two builds; got {one.name} {digests[0]}, {other.name} {digests[1]}"
            )
        print(f"{digests[0]}  {one.name}")


def check_on(minor: int, wheel: Path, root: Path) -> bool:
    """Install the wheel on one Python and run README's snippets; False if that Python is not there."""
    python = find_python(minor)
    if python is None:
        print(f"Python 3.{minor} is not on this machine: not checked")
        return False
    place = root / f"3.{minor}"
    place.mkdir()
    with timed(f"Python 3.{minor}: install the wheel"):
        environment = Environment(place / "environment", python)
        environment.run(["pip", "install", str(wheel)], place)
    with timed(f"Python 3.{minor}: pip check, gristmill doctor, {README.name}"):
        environment.run(["pip", "check"], place)
        environment.run(["gristmill", "doctor"], place)
        run_snippets(environment, README, place / "readme")
    if minor == MINORS[0]:
        write_bill(str(environment.bin / "python"), DIST)
    return True


def find_python(minor: int) -> str | None:
    """Return an interpreter that can make environments: on the path, or one of pyenv's."""
    name = f"python3.{minor}"
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    for found in (shutil.which(name), *sorted(map(str, pyenv.glob(f"3.{minor}.*/bin/{name}")))):
        if (
            found
            and not subprocess.run([found, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode
        ):
            return found
    return None


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=REPOSITORY, check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
