"""Curate a small corpus with the command line, and look at what was kept, dropped and put aside.

    python examples/demo/run_demo.py [DIRECTORY]

Everything is written below DIRECTORY (examples/demo/out by default), which is emptied first.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from make_corpus import make_corpus

HERE = Path(__file__).parent
EXAMPLES_SHOWN = 5
COMMAND = [sys.executable, "-c", "from gristmill.cli.main import main; main()"]  # also where PATH lacks gristmill


def read_lines(directory: Path) -> Iterator[dict[str, object]]:
    """Yield the documents of all JSONL files below a directory."""
    for file in sorted(directory.rglob("*.jsonl")):
        yield from (json.loads(line) for line in file.read_bytes().splitlines())


def show_rejects(directory: Path) -> None:
    """Print one dropped document for each reason."""
    shown: set[object] = set()
    for document in read_lines(directory):
        reason = document["reject_reason"]
        if reason in shown or len(shown) == EXAMPLES_SHOWN:
            continue
        shown.add(reason)
        value, threshold = document["reject_value"], document["reject_threshold"]
        measured = f"{value:.3g}" if isinstance(value, float) else value
        text = str(document.get("text") or "(no text)").replace("\n", " ⏎ ")
        print(f"  {document.get('id')}: {reason}, measured {measured}, wanted {threshold}")
        print(f"    {text[:90]}{'…' * (len(text) > 90)}")


def show_quarantine(directory: Path, base: Path) -> None:
    """Print where the lines are that could not be read."""
    for record in list(read_lines(directory))[:EXAMPLES_SHOWN]:
        source = Path(str(record["source"]))
        where = source.relative_to(base) if source.is_relative_to(base) else source
        print(f"  {where}, line {record['line']}: {str(record['error'])[:90]}")


def main() -> int:
    """Make the corpus, run the recipe, show examples."""
    work = Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "out").resolve()
    shutil.rmtree(work, ignore_errors=True)
    raw, clean, rejects = work / "raw", work / "clean", work / "rejects"
    make_corpus(raw)
    arguments = [
        "run",
        str(HERE / "recipe.yaml"),
        "--input",
        str(raw),
        "--output",
        str(clean),
        "--rejects",
        str(rejects),
    ]
    print("A small corpus of prose, menus, price lists and broken lines, and one command:\n")
    print(f"  gristmill {' '.join(arguments)}\n", flush=True)
    done = subprocess.run([*COMMAND, *arguments, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(f"gristmill exited with {done.returncode}", file=sys.stderr)
        return done.returncode
    result = json.loads(done.stdout.splitlines()[-1])
    print("\nSome dropped documents, with what was measured:")
    show_rejects(rejects)
    print(f"\nSome of the {result['quarantined']} lines that are not documents:")
    show_quarantine(Path(result["run_dir"]) / "quarantine", raw)
    print("\nWhere to look next:")
    print(f"  {clean}   what was kept, one file for each part of the input")
    print(f"  {HERE / 'recipe.yaml'}   change a threshold, run the command again, and see it refuse to mix the two")
    print("  gristmill stages, gristmill recipes   what a recipe can be made of")
    print("  docs/guide/   the guide")
    return 0


if __name__ == "__main__":
    sys.exit(main())
