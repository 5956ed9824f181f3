"""Runs for a dashboard to show, with content that was made to break it, and how a test walks through its page."""

import json
import re
import shutil
import subprocess
import sys

from tests.run_snapshots import STARTED_AT, run_snapshot, stage_snapshot

from gristmill.metrics.history_writer import HistoryWriter

COMMAND = [sys.executable, "-m", "gristmill.cli.main"]
SCREENS = ("flow", "funnel", "rule", "rejects", "quarantine", "workers", "schedule", "events", "compare")

SCRIPT = "<script>alert(1)</script>"
STYLE = "</style><img src=x onerror=alert(2)>"
BIDI = "abc\u202edcba\u0007\u0000end"
SHOWN_BIDI = "abc⟨U+202E⟩dcba␇␀end"

OWN = '''
import time
import pyarrow as pa
from pathlib import Path
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import DocumentFilter

class Odd(ProcessingStage):
    """Drops for a reason, and fails with a message, that are markup."""
    name = "odd"
    def process(self, batch):
        texts = batch.column("text").to_pylist()
        for text in texts:
            if text.startswith("poison"):
                raise ValueError("<script>alert(3)</script> cannot take " + text[:30])
        mask = [text.startswith("drop") for text in texts]
        self.context.drop(batch, mask, reason="<b onclick=alert(4)>reason</b>", values=[len(text) for text in texts])
        return batch.filter(pa.array([not dropped for dropped in mask]))

class Named(ProcessingStage):
    """Drops, measures and fails under a name that its user has chosen."""
    def __init__(self, name, key):
        self.name, self.key = name, key
    def process(self, batch):
        texts = batch.column("text").to_pylist()
        for text in texts:
            if text.startswith("poison " + self.key):
                raise ValueError(self.name + " cannot take it")
        dropped = [text.startswith("drop " + self.key) for text in texts]
        kept, lengths = [not each for each in dropped], [len(text) for text in texts]
        self.context.measure(self.name[:80], lengths, kept, (None, 100), of=batch)
        self.context.drop(batch, dropped, reason=self.name, values=lengths)
        return batch.filter(pa.array(kept))

class Waits(ProcessingStage):
    """Waits in the second file until it may go on."""
    name = "waits"
    def process(self, batch):
        while "wait" in batch.column("id").to_pylist()[0] and not Path("go").exists():
            time.sleep(0.02)
        return batch

class Vowels(DocumentFilter):
    """What a user writes in five lines."""
    def score_document(self, text):
        return sum(text.count(vowel) for vowel in "aeiou") / max(1, len(text))
    def bounds(self):
        return 0.15, None
'''

RUNS = {
    "hostile": "texts, ids and errors that were made to break the page",
    "kept": "a run that nothing fails in",
    "named": "names that were made to break the page",
    "long": "the same as kept, with a history of five minutes",
    "brief": "the same, with two moments",
}
# Names of a stage, a reason, a rule and an error, and how the page shows them. A rule's is as long as is allowed. The
# others may be of any length, but a question about them has to fit into the headers that the server takes.
NAMES = {
    "script": (SCRIPT, SCRIPT),
    "style": (STYLE, STYLE),
    "bidi": ("abc\u202edcba\u2066end", "abc⟨U+202E⟩dcba⟨U+2066⟩end"),
    "control": ("bell\u0007 escape\u001b[31m null\u0000", "bell␇ escape␛[31m null␀"),
    "long": ("very-long-" * 100, "very-long-" * 100),
}
NUM_DROPPED, MEGABYTE = 3, "x" * 1_000_000


def documents():
    """Ordinary ones, and one of each kind that somebody might send to break the page."""
    plain = [
        {"id": f"d{n}", "text": "the mill grinds " * (1 + n % 40), "source": ("web", "books")[n % 2]}
        for n in range(400)
    ]
    odd = [
        *(
            {"id": SCRIPT, "text": "drop " + SCRIPT},
            {"id": STYLE, "text": "drop " + STYLE},
            {"id": BIDI, "text": "drop " + BIDI},
        ),
        {"id": "long", "text": "drop " + "x" * 1_000_000},
        *({"id": SCRIPT, "text": "poison " + STYLE}, {"id": "p2", "text": "poison " + BIDI}),
        *({"id": f"v{n}", "text": "mmm sss rrr " * 9} for n in range(20)),
    ]
    return [{"source": SCRIPT, **document} for document in [*plain, *odd]]


def named_documents():
    """Of each name: some that its stage drops, one of them a line of a megabyte, and one that it fails on."""
    yield from ({"id": f"plain-{n}", "text": "the mill grinds"} for n in range(50))
    for key in NAMES:
        yield {"id": f"{key}-huge", "text": f"drop {key} {MEGABYTE}"}
        yield from ({"id": f"{key}-{n}", "text": f"drop {key} {n}"} for n in range(NUM_DROPPED - 1))
        yield {"id": f"{key}-poison", "text": f"poison {key}"}


def write(path, found):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(document) + "\n" for document in found))


def recipe(path, *stages):
    lines = ["name: own", "stages:", '- JsonlReader: {file_paths: "${input}"}', *(f"- {stage}" for stage in stages)]
    path.write_text("\n".join([*lines, '- JsonlWriter: {path: "${output}"}']) + "\n")


HOSTILE = (
    "own_stages.Odd",
    f'ScoreFilter: {{filter_obj: own_stages.Vowels, with_: {{name: "{SCRIPT}"}}}}',
    "ScoreFilter: {filter_obj: {WordCountFilter: {min_words: 9}}}",
)


def finished_runs(place):
    """Runs what `RUNS` lists, in a directory."""
    (place / "own_stages.py").write_text(OWN)
    write(place / "raw/a.jsonl", documents())
    write(place / "raw/b.jsonl", documents()[:200])
    write(place / "plain/a.jsonl", [document for document in documents() if document["id"].startswith("d")])
    recipe(place / "hostile.yaml", *HOSTILE)
    recipe(
        place / "plain.yaml",
        "ScoreFilter: {filter_obj: {WordCountFilter: {min_words: 9}}}",
        "ScoreFilter: {filter_obj: own_stages.Vowels}",
    )
    gristmill(place, "run", "hostile.yaml", "--input", "raw", "--output", "hostile", "--rejects", "rejects")
    gristmill(place, "run", "plain.yaml", "--input", "plain", "--output", "kept")
    write(place / "names/a.jsonl", named_documents())
    named = (f"own_stages.Named: {{name: {json.dumps(name)}, key: {key}}}" for key, (name, _) in NAMES.items())
    recipe(place / "named.yaml", *named)
    options = ("--rejects", "named-rejects", "--max-quarantined", str(len(NAMES)))
    gristmill(place, "run", "named.yaml", "--input", "names", "--output", "named", *options)
    for name, seconds in (("long", 300), ("brief", 2)):
        shutil.copytree(place / "kept", place / name)
        (place / name / ".gristmill" / "metrics.jsonl").write_bytes(even_history(seconds))


def even_history(seconds):
    """What a run that goes on evenly writes down about itself, a line a second."""
    writer, stage = HistoryWriter(), stage_snapshot(name="jsonl_reader", workers=2)
    moments = [
        run_snapshot(
            [stage],
            read=100 * n,
            written=60 * n,
            made_at=STARTED_AT + n,
            elapsed_s=float(n),
            resource_seconds={"cpu": {"useful": 1.0 + n, "starved": 1.0 + n}},
        )
        for n in range(seconds)
    ]
    return b"".join(writer.lines(moment) for moment in moments)


def gristmill(place, *arguments):
    allowed = () if arguments[0] in ("dashboard", "status") else ("--allow-module", "own_stages")
    done = subprocess.run(
        [*COMMAND, *arguments, *allowed], cwd=place, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_nothing_forbidden_happened(session, address):
    assert session.run("window.violations") == []
    assert (session.failures, session.dialogs) == ([], [])
    home = address.partition("#")[0]
    elsewhere = [url for url in session.requests if not url.startswith((home, "data:", "about:", "blob:" + home))]
    assert elsewhere == []
    assert any(url.startswith(f"{home}api/") for url in session.requests)


def go(page, screen):
    page.run(f"location.hash = {json.dumps(screen)}")
    name = screen.partition("&")[0]
    page.until(
        f"document.querySelector('main').className === 'screen-{name}' && !document.querySelector('[aria-busy]')"
    )


def choose_run(page, name):
    select = "document.querySelector('#run')"
    page.run(f"({select}.value = {list(RUNS).index(name)}, {select}.dispatchEvent(new Event('change')))")


def funnel_rows(page):
    """Stages with what came in, was dropped, failed and went on, as numbers."""
    cells = "[...row.children].map((cell) => cell.textContent)"
    rows = page.run(f"[...document.querySelectorAll('.funnel tr.first')].map((row) => {cells})")
    return [(row[0], number(row[2]), number(row[3]), number(row[5]), number(row[6])) for row in rows]


def number(text):
    return int(re.sub(r"\D", "", text) or 0)


def books(work, output):
    return json.loads((work / output / ".gristmill" / "report.json").read_text())
