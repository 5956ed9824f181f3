"""Curate a small corpus with one command, and look at what was kept, dropped, changed and put aside.

    python examples/demo/run_demo.py [DIRECTORY]

Everything is written below DIRECTORY (examples/demo/out by default), which is emptied first.
"""

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from make_corpus import make_corpus

HERE = Path(__file__).parent
BROKEN_SHOWN = 3
COMMAND = [sys.executable, "-m", "gristmill"]  # also where PATH lacks gristmill
RUN = "run web-english --input raw --output clean --rejects rejects --set id_field=id --set benchmarks=benchmarks"
REPLACED = re.compile(r"[^\n]*<[A-Z_]+>[^\n]*")


def read_lines(directory: Path) -> Iterator[dict[str, object]]:
    """Yield the documents of all JSONL files in a directory."""
    for file in sorted(directory.glob("*.jsonl")):
        yield from (json.loads(line) for line in file.read_bytes().splitlines())


def shorten(text: object) -> str:
    """The beginning of a text, on one line."""
    line = str(text or "(no text)").replace("\n", " ⏎ ")
    return f"{line[:90]}{'…' * (len(line) > 90)}"


def show_rejects(directory: Path) -> None:
    """Print one dropped document of each stage."""
    shown: set[object] = set()
    for document in sorted(read_lines(directory), key=lambda own: str(own["reject_stage"])):
        stage = document["reject_stage"]
        if stage in shown or not document.get("text"):
            continue
        shown.add(stage)
        lost_to = document.get("reject_lost_to")
        value = document["reject_value"]
        measured = f", measured {value:.3g}" if isinstance(value, float) else ""
        why = f"{measured}, wanted {document['reject_threshold']}" if document["reject_threshold"] else ""
        print(f"  {document['id']}, by {stage}: {document['reject_reason']}{f' of {lost_to}' if lost_to else why}")
        print(f"    {shorten(document['text'])}")


def show_replaced(directory: Path) -> None:
    """Print lines in which personal data was replaced, one of each kind."""
    shown: set[str] = set()
    for document in read_lines(directory):
        for line in REPLACED.findall(str(document["text"])):
            kind = line[line.index("<") : line.index(">") + 1]
            if kind not in shown:
                shown.add(kind)
                print(f"  {document['id']}: {shorten(line)}")


def show_quarantine(directory: Path, base: Path) -> None:
    """Print where the lines are that could not be read."""
    records = (record for own in sorted(directory.glob("segment-*/quarantine")) for record in read_lines(own))
    for record in itertools.islice(records, BROKEN_SHOWN):
        source = Path(str(record["source"]))
        where = source.relative_to(base) if source.is_relative_to(base) else source
        print(f"  {where}, line {record['line']}: {str(record['error'])[:90]}")


def main() -> int:
    """Make the corpus, run the recipe, show examples."""
    work = Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "out").resolve()
    shutil.rmtree(work, ignore_errors=True)
    make_corpus(work)
    print("Speeches of five presidents as the web would have them, with menus, copies and broken lines; one command:\n")
    print(f"  gristmill {RUN}\n", flush=True)
    done = subprocess.run([*COMMAND, *RUN.split(), "--json"], cwd=work, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(f"gristmill exited with {done.returncode}", file=sys.stderr)
        return done.returncode
    result = json.loads(done.stdout.splitlines()[-1])
    print("\nA dropped document of each stage:")
    show_rejects(work / "rejects")
    print("\nPersonal data that was replaced:")
    show_replaced(work / "clean")
    print(f"\nSome of the {result['quarantined']} lines that are not documents:")
    show_quarantine(Path(result["run_dir"]), work / "raw")
    print("\nWhere to look next:")
    print(f"  {work / 'clean'}   what was kept, one file for each part of the input")
    print(f"  gristmill report {work / 'clean'} --output report.html   the whole run as one page")
    print("  gristmill recipes show web-english > mine.yaml   a recipe to be changed")
    print("  docs/guide/   the guide")
    return 0


if __name__ == "__main__":
    sys.exit(main())
