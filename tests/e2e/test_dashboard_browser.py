"""The dashboard in a real browser, on a live and on a finished run, with content that was made to break it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from tests.browser import browser
from tests.run_snapshots import STARTED_AT, run_snapshot, stage_snapshot

from gristmill.metrics.history_writer import HistoryWriter

pytestmark = [pytest.mark.heavy, pytest.mark.e2e, pytest.mark.xdist_group("browser")]

COMMAND = [sys.executable, "-m", "gristmill.cli.main"]
PICTURES = Path(__file__).parents[2] / "build" / "dashboard"
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


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Finished runs: `RUNS` says which, in the order in which the page has them."""
    place = tmp_path_factory.mktemp("dashboard")
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
    return place


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


@pytest.fixture(scope="module")
def address(work):
    with subprocess.Popen([*COMMAND, "dashboard", *RUNS], cwd=work, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(session, address):
    """The page on a finished run. Whatever a test did, nothing forbidden may have happened."""
    session.failures.clear()
    session.requests.clear()
    session.dialogs.clear()
    session.prefer("light")
    session.open(address)
    session.until("document.querySelector('#state').textContent === 'finished'")
    yield session
    assert_nothing_forbidden_happened(session, address)


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


def number(text):
    return int(re.sub(r"\D", "", text) or 0)


def books(work, output):
    return json.loads((work / output / ".gristmill" / "report.json").read_text())


def ledger(work, output):
    lines = (work / output / ".gristmill" / "ledger.jsonl").read_text().splitlines()
    return [record for line in lines if "counts" in (record := json.loads(line))]


def test_counts_of_the_flow_are_those_of_the_books(page, work):
    go(page, "flow")
    told = books(work, "hostile")
    page.until("document.querySelectorAll('.flow tbody tr').length === 5")
    shown = {
        name: number(page.text(f'.tiles [data-name="{name}"] dd'))
        for name in ("Read", "Kept", "Dropped", "Quarantined")
    }
    dropped = sum(sum(reasons.values()) for reasons in told["dropped"].values())
    assert shown == {
        "Read": told["read"],
        "Kept": told["written"],
        "Dropped": dropped,
        "Quarantined": told["quarantined"],
    }
    assert shown["Read"] == shown["Kept"] + shown["Dropped"] + shown["Quarantined"]


def funnel_rows(page):
    """Stages with what came in, was dropped, failed and went on, as numbers."""
    cells = "[...row.children].map((cell) => cell.textContent)"
    rows = page.run(f"[...document.querySelectorAll('.funnel tr.first')].map((row) => {cells})")
    return [(row[0], number(row[2]), number(row[3]), number(row[5]), number(row[6])) for row in rows]


def test_the_funnel_adds_up_in_documents(page, work):
    go(page, "funnel")
    told = books(work, "hostile")
    rows = funnel_rows(page)
    assert [row[0] for row in rows] == ["jsonl_reader", "odd", SCRIPT, "word_count", "jsonl_writer"]
    for _, came, dropped, failed, went in rows:
        assert came == dropped + failed + went
    assert all(before[4] == after[1] for before, after in pairwise(rows))
    assert (rows[0][1], rows[-1][4]) == (told["read"], told["written"])
    cells = "[row.dataset.stage, row.dataset.rule, row.children[3].textContent]"
    parts = page.run(f"[...document.querySelectorAll('.funnel tbody tr')].map((row) => {cells})")
    reasons = {(stage, rule): number(dropped) for stage, rule, dropped in parts if rule}
    everything = {(stage, reason): n for stage, own in told["dropped"].items() for reason, n in own.items()}
    apart = {(stage, reason): n for (stage, reason), n in everything.items() if stage != reason}
    assert {key: count for key, count in reasons.items() if count} == apart


def test_the_funnel_adds_up_in_bytes(page, work):
    """What each stage dropped is in the ledger, and what it was given it passed on, dropped or failed on."""
    go(page, "funnel")
    page.run("[...document.querySelectorAll('.choices button')].find((b) => b.textContent === 'bytes').click()")
    numbers = "[row.dataset.stage, ...[...row.querySelectorAll('.bar i')].map((part) => +part.dataset.n)]"
    rows = page.run(f"[...document.querySelectorAll('.funnel tr.first')].map((row) => {numbers})")
    wanted = {}
    for record in ledger(work, "hostile"):
        for name, own in record["counts"].items():
            went, lost = wanted.get(name, (0, 0))
            wanted[name] = went + own.get("bytes_out", 0), lost + sum(own.get("dropped_bytes", {}).values())
    assert {name: (went, lost) for name, went, lost, _ in rows} == wanted
    by_name = {name: (went, lost) for name, went, lost, _ in rows}
    assert by_name["odd"][0] == sum(by_name[SCRIPT])
    assert by_name[SCRIPT][0] == sum(by_name["word_count"])


def drag(page, bound, to_x):
    box = page.box(f'.grip[data-bound="{bound}"] .reach')
    x, y = box["x"] + box["width"] / 2, box["y"] + 60
    page.mouse("mousePressed", x, y)
    page.mouse("mouseMoved", (x + to_x) / 2, y)
    page.mouse("mouseMoved", to_x, y)
    page.mouse("mouseReleased", to_x, y)


def test_dragging_a_threshold_gives_the_count_that_rethreshold_gives(page, work):
    choose_run(page, "kept")
    go(page, "rule&stage=word_count&rule=word_count")
    page.until("document.querySelector('.grip')")
    box = page.box(".histogram")
    drag(page, "low", box["x"] + box["width"] * 0.45)
    chosen = page.run("+document.querySelector('.grip').getAttribute('aria-valuenow')")
    would = page.run("+document.querySelector('.verdict').dataset.refused")
    assert chosen != 9
    if not (work / "scored").exists():
        gristmill(work, "score", "plain.yaml", "--input", "plain", "--output", "scored")
    told = json.loads(
        gristmill(work, "rethreshold", "plain.yaml", "scored", "--set", f"word_count.min_words={chosen:g}", "--json")
    )
    rule = next(rule for rule in told["rules"] if rule["name"] == "word_count")
    assert would == rule["refused_first"]
    assert f"instead of {books(work, 'kept')['dropped']['word_count']['word_count']}" in page.text(".verdict")


def test_an_example_opens_as_text(page):
    go(page, "rejects&stage=odd")
    page.until("document.querySelectorAll('.example').length >= 4")
    ids = page.run("[...document.querySelectorAll('.example .id')].map((id) => id.textContent)")
    assert ids[:4] == [SCRIPT, STYLE, SHOWN_BIDI, "long"]
    for index, text in (
        (0, "drop " + SCRIPT),
        (1, "drop " + STYLE),
        (2, "drop " + SHOWN_BIDI),
        (3, "drop " + "x" * 199_995),
    ):
        page.run(f"document.querySelectorAll('.example button')[{index}].click()")
        assert page.text("dialog pre.text") == text
        page.press("Escape")
        page.until("!document.querySelector('dialog')")
    assert page.run("document.querySelectorAll('main script, main img, main style, main b[onclick]').length") == 0
    assert "<b onclick=alert(4)>reason</b>" in page.text(".choices")


def test_a_quarantined_document_opens_with_its_error(page):
    go(page, "quarantine")
    assert "<script>alert(3)</script> cannot take poison" in page.text(".choices")
    opened = {}
    for index in range(page.run("document.querySelectorAll('.choices button').length")):
        page.run(f"document.querySelectorAll('.choices button')[{index}].click()")
        shown = page.run(f"document.querySelectorAll('.choices button')[{index}].querySelector('small').textContent")
        page.until(f"document.querySelector('.sides .lead')?.textContent === {json.dumps(shown)}")
        page.run("document.querySelector('button.open').click()")
        document = json.loads(page.text("dialog pre.text"))
        opened[document["id"]] = document["text"]
        page.press("Escape")
        page.until("!document.querySelector('dialog')")
    assert opened == {SCRIPT: "poison " + STYLE, "p2": "poison " + BIDI}
    page.run("document.querySelector('button.open').click()")
    assert "alert(3)" in page.text("dialog pre.traceback")
    assert page.run("document.querySelectorAll('dialog script, dialog img').length") == 0
    page.press("Escape")


def test_a_worker_opens(page):
    go(page, "workers")
    page.until("document.querySelector('.square')")
    page.run("document.querySelector('.square').click()")
    assert "tasks in" in page.text("main .card:nth-of-type(2) .lead, main div .card .lead")


def test_names_of_stages_are_text_wherever_they_stand(page):
    for screen in SCREENS:
        go(page, screen)
        assert (
            page.run("document.querySelectorAll('main script, main img, main [onclick], main [onerror]').length") == 0
        ), screen
    go(page, "funnel")
    assert SCRIPT in page.text(".funnel")


@pytest.mark.parametrize("key", NAMES)
def test_a_hostile_name_of_stage_reason_rule_and_error_is_text_on_every_screen(page, work, key):
    name, shown = NAMES[key]
    stage, errors = f"stage={quote(name)}", "[...document.querySelectorAll('.choices button')]"
    choose_run(page, "named")
    go(page, "flow")
    page.until(f"document.querySelectorAll('.flow tbody tr').length === {2 + len(NAMES)}")
    assert shown in page.run("[...document.querySelectorAll('.flow tbody th')].map((cell) => cell.textContent)")
    go(page, "funnel")
    [row] = [row for row in funnel_rows(page) if row[0] == shown]
    assert (row[2], row[3]) == (NUM_DROPPED, 1)
    go(page, f"rule&{stage}&rule={quote(name[:80])}")
    page.until("document.querySelector('.verdict')")
    assert shown in page.text("main")
    assert page.run("+document.querySelector('.verdict').dataset.refused") == NUM_DROPPED
    go(page, f"rejects&{stage}&reason={quote(name)}")
    page.until(f"document.querySelectorAll('.example').length === {NUM_DROPPED}")
    assert f"{shown} – {NUM_DROPPED} documents dropped by {shown}" in page.text("main")
    page.run("document.querySelector('.example button').click()")
    assert page.text("dialog pre.text") == f"drop {key} {MEGABYTE}"[:200_000]
    page.press("Escape")
    go(page, "quarantine")
    errors = "[...document.querySelectorAll('.choices button')]"
    page.run(f"{errors}.find((button) => button.textContent.includes({json.dumps(shown)})).click()")
    page.until(
        f"document.querySelector('pre.traceback')?.textContent.includes({json.dumps(shown + ' cannot take it')})"
    )
    page.run("document.querySelector('button.open').click()")
    assert f"poison {key}" in page.text("dialog pre.text")
    page.press("Escape")
    for screen in SCREENS:
        go(page, screen)
        assert page.run("document.querySelectorAll('main script, main img, main style').length") == 0, screen


FOCUSABLE = """[...document.querySelectorAll('a[href], button, select, input, [tabindex="0"]')]
    .filter((e) => e.tabIndex >= 0 && !e.disabled && e.getClientRects().length)"""


@pytest.mark.parametrize("screen", SCREENS)
def test_everything_can_be_reached_by_keyboard(page, screen):
    page.press(str(1 + SCREENS.index(screen)))
    page.until(
        f"document.querySelector('main').className === 'screen-{screen}' && !document.querySelector('[aria-busy]')"
    )
    page.run(f"(window.left = new Set({FOCUSABLE}), document.activeElement?.blur())")
    count = page.run("window.left.size")
    assert count > 10
    for _ in range(count + 3):
        page.press("Tab")
        page.run("window.left.delete(document.activeElement)")
    assert page.run("[...window.left].map((e) => e.outerHTML.slice(0, 100))") == []


def test_a_threshold_moves_by_keyboard(page):
    go(page, "rule&stage=word_count&rule=word_count")
    page.until("document.querySelector('.grip')")
    page.run("document.querySelector('.grip').focus()")
    before = page.run("+document.querySelector('.verdict').dataset.refused")
    for _ in range(5):
        page.press("ArrowRight")
    assert page.run("+document.querySelector('.verdict').dataset.refused") > before
    page.press("Escape")
    assert page.run("+document.querySelector('.verdict').dataset.refused") == before


def test_the_page_has_landmarks_and_says_what_changes(page):
    landmarks = ["header", "nav[aria-label]", "main", "[aria-live]", "h1", "a.skip"]
    found = page.run(f"{json.dumps(landmarks)}.map((s) => document.querySelectorAll(s).length)")
    assert found == [1, 1, 1, 1, 1, 1]
    go(page, "flow")
    page.until("document.querySelectorAll('.chart canvas').length === 4")
    for index in range(4):
        page.run(f"document.querySelectorAll('.chart h2 button')[{index}].click()")
    assert page.run("document.querySelectorAll('.chart .behind:not([hidden]) table').length") == 4


def close_to(pixel, colour, by=24):
    return all(abs(int(a) - int(b)) <= by for a, b in zip(pixel, colour, strict=True))


def resolved(page, name):
    """The colour of the theme, as three numbers."""
    script = f"""(() => {{
        const probe = document.body.appendChild(document.createElement("i"));
        probe.style.color = "var(--{name})";
        const found = getComputedStyle(probe).color;
        probe.remove();
        return found;
    }})()"""
    return [float(part) for part in re.findall(r"[\d.]+", page.run(script))][:3]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bars_and_lines_are_where_they_must_be(page, scheme):
    page.prefer(scheme)
    for screen in SCREENS:
        go(page, screen)
        picture = page.picture(PICTURES / f"{screen}-{scheme}.png")
        # Cards stand out from the page, and nothing covers them: the ground is the theme's.
        assert close_to(picture[880, 170], resolved(page, "bg")), screen
    kept, dropped = resolved(page, "kept"), resolved(page, "dropped")
    go(page, "flow")
    picture = page.picture(PICTURES / f"flow-{scheme}.png")
    bar = page.box(".flow tbody tr:nth-child(2) .bar .kept")
    assert bar["width"] > 100
    assert close_to(picture[int(bar["y"] + 6), int(bar["x"] + bar["width"] / 2)], kept)
    go(page, "rule&stage=word_count&rule=word_count")
    page.until("document.querySelector('.grip')")
    picture = page.picture(PICTURES / f"rule-{scheme}.png")
    boxes = page.run("""['.fill-kept', '.fill-dropped'].map((bars) => {
        const lines = [...document.querySelectorAll('.grip line')].map((line) => line.getBoundingClientRect().x);
        return [...document.querySelectorAll(bars)].map((bar) => bar.getBoundingClientRect())
            .filter((bar) => lines.every((x) => Math.abs(bar.x + bar.width / 2 - x) > bar.width))
            .sort((a, b) => b.height - a.height)[0];
    }).map(({x, y, width, height}) => [x + width / 2, y + height / 2, height])""")
    for (x, y, height), colour in zip(boxes, (kept, dropped), strict=True):
        assert height > 20
        assert close_to(picture[int(y), int(x)], colour)
    line = page.box(".grip line")
    assert close_to(picture[int(line["y"] + 100), int(line["x"] + line["width"] / 2)], resolved(page, "ink"), by=60)
    go(page, "schedule")
    picture = page.picture(PICTURES / f"schedule-{scheme}.png")
    canvas = page.box("canvas.schedule")
    row = picture[int(canvas["y"] + 9), int(canvas["x"] + 150) : int(canvas["x"] + canvas["width"])]
    assert sum(close_to(pixel, kept) for pixel in row) > 50


def near(picture, box, colour):
    """How many pixels of a box have nearly this colour."""
    top, left = max(0, int(box["y"])), max(0, int(box["x"]))
    inside = picture[top : int(box["y"] + box["height"]), left : int(box["x"] + box["width"])]
    return int((np.abs(inside.astype(int) - np.array(colour)).max(axis=-1) <= 24).sum())


def background(page, selector):
    found = page.run(f"getComputedStyle(document.querySelector({json.dumps(selector)})).backgroundColor")
    return [float(part) for part in re.findall(r"[\d.]+", found)][:3]


def coloured_columns(picture, box, colour):
    """The share of a box's columns in which something has nearly this colour."""
    top, left = int(box["y"]), int(box["x"])
    inside = picture[top : top + int(box["height"]), left : left + int(box["width"])].astype(int)
    return float((np.abs(inside - np.array(colour)).max(axis=-1) <= 24).any(axis=0).mean())


def charts(page, run, scheme):
    """Where the four charts of the flow are, and a picture of them."""
    choose_run(page, run)
    go(page, "flow")
    page.until("document.querySelectorAll('.chart canvas').length === 4")
    page.run("document.querySelector('.grid').scrollIntoView({block: 'end'})")
    return page.boxes(".chart canvas"), page.picture(PICTURES / f"charts-{run}-{scheme}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_of_charts_are_drawn_over_all_of_the_time(page, scheme):
    page.prefer(scheme)
    (speed, memory, workers, time), picture = charts(page, "long", scheme)
    drawn = ((speed, "c1"), (memory, "c1"), (memory, "dropped"), (workers, "c1"), (time, "c1"), (time, "c3"))
    for chart, line in drawn:
        share = coloured_columns(picture, chart, resolved(page, line))
        assert share > (0.3 if line == "dropped" else 0.75), (chart, line)  # the limit is dashed; left are the axes
    assert coloured_columns(picture, speed, resolved(page, "c2")) > 0.3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_a_run_of_two_moments_has_to_show_is_seen(page, scheme):
    page.prefer(scheme)
    boxes, picture = charts(page, "brief", scheme)
    for box in boxes:
        assert near(picture, box, resolved(page, "c1")) >= 12


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bars_of_the_funnel_and_squares_of_workers_are_drawn(page, scheme):
    page.prefer(scheme)
    go(page, "funnel")
    picture = page.picture(PICTURES / f"funnel-{scheme}.png")
    for kind in ("kept", "dropped"):
        widest = max(page.boxes(f".funnel .bar .{kind}"), key=lambda box: box["width"])
        assert widest["width"] > 5
        # What is dropped is striped.
        assert near(picture, widest, resolved(page, kind)) > 0.4 * widest["width"] * widest["height"]
    go(page, "workers")
    page.until("document.querySelector('.square.ended')")
    picture, squares = page.picture(PICTURES / f"workers-{scheme}.png"), page.boxes(".square")
    assert len(squares) >= 2
    for box in squares:
        assert near(picture, box, background(page, ".square.ended")) > 0.6 * box["width"] * box["height"]


def test_a_live_run_is_followed_to_its_end(session, work, tmp_path):
    (tmp_path / "own_stages.py").write_text(OWN)
    write(tmp_path / "raw/a.jsonl", documents()[:200])
    write(tmp_path / "raw/b.jsonl", [{**document, "id": f"wait{n}"} for n, document in enumerate(documents()[:100])])
    recipe(tmp_path / "own.yaml", "own_stages.Waits", "ScoreFilter: {filter_obj: {WordCountFilter: {min_words: 9}}}")
    arguments = (
        "run",
        "own.yaml",
        "--allow-module",
        "own_stages",
        "--input",
        "raw",
        "--output",
        "out",
        "--workers",
        "2",
        "--dashboard",
    )
    command = [*COMMAND, *arguments]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=os.environ) as run:
        address = next(line.split()[-1] for line in run.stderr if line.startswith("dashboard "))
        for noted in (session.failures, session.requests, session.dialogs):
            noted.clear()
        session.prefer("light")
        session.open(address)
        # The first file is through; the second waits.
        session.until("document.querySelector('#state').textContent === 'running'")
        session.until("document.querySelector('#line').textContent.includes('200 read')")
        session.picture(PICTURES / "flow-live.png")
        session.prefer("dark")
        picture = session.picture(PICTURES / "flow-live-dark.png")
        assert close_to(picture[880, 170], resolved(session, "bg"))
        bar = session.box(".flow tbody tr:nth-child(2) .bar .kept")
        assert near(picture, bar, resolved(session, "kept")) > 0.9 * bar["width"] * bar["height"] > 100
        go(session, "workers")
        session.until("document.querySelector('.square.busy')")
        busy = session.box(".square.busy")
        picture = session.picture(PICTURES / "workers-live-dark.png")
        assert near(picture, busy, resolved(session, "kept")) > 0.6 * busy["width"] * busy["height"]
        session.prefer("light")
        (tmp_path / "go").touch()
        go(session, "flow")
        session.until("document.querySelector('#state').textContent === 'finished'")
        shown = {name: number(session.text(f'.tiles [data-name="{name}"] dd')) for name in ("Read", "Kept", "Dropped")}
        run.stderr.read()
    assert run.returncode == 0
    told = books(tmp_path, "out")
    assert shown == {"Read": 300, "Kept": told["written"], "Dropped": told["dropped"]["word_count"]["word_count"]}
    assert_nothing_forbidden_happened(session, address)
