"""The first hour of somebody who has Python: README's install line, README's snippets, the tutorials; timed.

    python tools/first_hour.py WHEEL [--python python3.12]

Everything happens in an empty directory, in an environment of its own, without the checkout on any path. `make
first-hour` builds the wheel first. Tutorials are the notebooks in docs/tutorials, if there are any.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from snippets import install_lines, script_lines

REPOSITORY = Path(__file__).parents[1]
README = REPOSITORY / "README.md"
TUTORIALS = REPOSITORY / "docs" / "tutorials"
NOTEBOOKS = ("nbclient", "ipykernel")  # what runs one

_TIMING = "import sys as _s, time as _t; print('[{0}]', round(_t.monotonic(), 3), file=_s.__stderr__, flush=True)"


class Environment:
    """A new virtual environment, and how it is used: with no trace of ours in the environment variables."""

    def __init__(self, directory: Path, python: str = sys.executable) -> None:
        self.bin = directory / "bin"
        subprocess.run([python, "-m", "venv", str(directory)], check=True)
        kept = ("HOME", "LANG", "TMPDIR", "SSL_CERT_FILE")
        inherited = {name: value for name, value in os.environ.items() if name in kept or name.startswith("PIP_")}
        cache = {"GRISTMILL_CACHE_DIR": str(directory.parent / "cache")}
        self.variables = {
            **inherited,
            **cache,
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def run(self, command: Sequence[str], directory: Path) -> "subprocess.CompletedProcess[str]":
        """Run a program; raises with what it said if it fails."""
        program = [str(self.bin / command[0]), *command[1:]]
        done = subprocess.run(program, cwd=directory, env=self.variables, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: failed\n{done.stdout}\n{done.stderr}")
        return done


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long something took."""
    began = time.monotonic()
    yield
    print(f"{time.monotonic() - began:8.1f} s  {what}", flush=True)


def run_snippets(environment: Environment, document: Path, directory: Path) -> list[tuple[int, float]]:
    """Run the snippets of a document as a reader would; return the line and the seconds of each."""
    directory.mkdir()
    script = directory / f"{document.stem}.py"
    lines = list(script_lines(document.read_text(encoding="utf-8"), _TIMING.format))
    script.write_text("\n".join([*lines, _TIMING.format("end")]) + "\n", encoding="utf-8")
    done = environment.run(["python", script.name], directory)
    marks = [line[1:].split("] ") for line in done.stderr.splitlines() if line.startswith("[") and "] " in line]
    at = [(name, float(when)) for name, when in marks if name == "end" or name.isdigit()]
    return [(int(name), after - when) for (name, when), (_, after) in pairwise(at)]


def main() -> None:
    """Run and time everything."""
    parser = argparse.ArgumentParser(
        description="Install the wheel as README says, run its snippets and the tutorials."
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable, help="the interpreter to make the environment with")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="first-hour-") as made:
        root = Path(made)
        with timed("a new environment"):
            environment = Environment(root / "environment", given.python)
        in_checkout, of_wheel = install_lines(README.read_text(encoding="utf-8"))
        (root / "downloads").mkdir()
        shutil.copy(given.wheel, root / "downloads")
        with timed(of_wheel):
            files = [path.name for path in (root / "downloads").iterdir()]
            environment.run([*of_wheel.split()[:-1], *files], root / "downloads")
        for number, seconds in run_snippets(environment, README, root / "readme"):
            print(f"{seconds:8.1f} s  README.md, snippet at line {number}")
        run_tutorials(environment, root)
        with timed(f"{in_checkout} (in a fresh checkout and another environment; compiles the kernels)"):
            install_checkout(in_checkout, Environment(root / "another", given.python), root / "checkout")
    print(f"{time.monotonic() - began:8.1f} s  all together")


def install_checkout(line: str, environment: Environment, directory: Path) -> None:
    """Install what is committed, from a copy that holds nothing else."""
    directory.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=REPOSITORY, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=directory, input=archive, check=True)
    environment.run(line.split(), directory)
    environment.run(["gristmill", "--version"], directory)


def run_tutorials(environment: Environment, root: Path) -> None:
    """Run every notebook, in a directory of its own."""
    notebooks = sorted(TUTORIALS.glob("*.ipynb"))
    if notebooks:
        with timed(f"pip install {' '.join(NOTEBOOKS)}"):
            environment.run(["pip", "install", "--quiet", *NOTEBOOKS], root)
    for notebook in notebooks:
        directory = root / notebook.stem
        directory.mkdir()
        shutil.copy(notebook, directory)
        with timed(f"docs/tutorials/{notebook.name}"):
            environment.run(["jupyter", "execute", notebook.name], directory)
    if not notebooks:
        print("            docs/tutorials: no notebook yet")


if __name__ == "__main__":
    main()
