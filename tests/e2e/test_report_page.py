"""A report opens in a real browser with the network off: nothing runs, nothing is refused, bars are seen."""

import json
import shutil
import subprocess
import zlib

import numpy as np
import pytest
from tests.jsonl_files import write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.cli.report import report
from gristmill.metrics.observation_files import encode_observations
from gristmill.metrics.observations import Example, MeasureTally, Nearest, Observations, Sample, Side
from gristmill.metrics.tally import tallied
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter

pytestmark = [pytest.mark.heavy, pytest.mark.slow]

HOSTILE = "</style></title><script>document.title='owned'</script><img src=http://example.org/x onerror=alert(1)>\u202e"
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync")
QUIET += ("--disable-background-networking", "--disable-component-update", "--hide-scrollbars")
NO_NETWORK = ("--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9", "--enable-logging=stderr")
GREEN = {"light": (0x2F, 0x7F, 0x5F), "dark": (0x55, 0xB4, 0x8C)}
RED = {"light": (0xC5, 0x50, 0x2F), "dark": (0xEE, 0x82, 0x62)}
PAPER = {"light": (0xFB, 0xFA, 0xF7), "dark": (0x14, 0x17, 0x1B)}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report of a run whose documents do their worst."""
    work = tmp_path_factory.mktemp("page")
    documents = [{"id": f"{HOSTILE}{n}", "text": HOSTILE + "word " * n, "source": HOSTILE} for n in range(60)]
    write_documents(work / "in" / "a.jsonl", documents)
    with (work / "in" / "a.jsonl").open("a") as file:
        file.write('{"broken": "' + "x" * 1_000_000 + "\n")
    stages = [JsonlReader(str(work / "in")), ScoreFilter(WordCountFilter(min_words=20)), JsonlWriter(str(work / "out"))]
    Pipeline(HOSTILE, stages=stages).run(LocalExecutor(num_workers=0), checkpoint_path=work / "run", max_quarantined=1)
    example = Example(19.0, 1, HOSTILE, HOSTILE, "", HOSTILE * 3)
    tally = MeasureTally("word_count", 1, 0, "word_count", "words", 20.0, None, "20 ≤ words")
    tally.kept, tally.refused = Side(tallied(range(20, 60)), 0, 20.0, 59.0), Side(tallied(range(20)), 0, 0.0, 19.0)
    tally.nearest = [Nearest("low", 20.0, [example], [example])]
    seen = Observations([tally], [Sample("word_count", 1, HOSTILE, [example])])
    (work / "run" / "measures").mkdir(exist_ok=True)
    (work / "run" / "measures" / "own.tally").write_bytes(encode_observations(seen))
    report(str(work / "run"), output=str(work / "report.html"))
    return work / "report.html"


def chromium(profile, *arguments):
    program = shutil.which("chromium") or shutil.which("chromium-browser") or "chromium"
    command = [program, *QUIET, *NO_NETWORK, f"--user-data-dir={profile}", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=True, timeout=110)


def pixels(png):
    """Rows, columns and colours of a PNG of eight bits a channel."""
    place, packed, width, channels = 8, b"", 0, 3
    while place < len(png):
        length, kind = int.from_bytes(png[place : place + 4]), png[place + 4 : place + 8]
        body = png[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            width, channels = int.from_bytes(body[:4]), {2: 3, 6: 4}[body[9]]
        packed += body if kind == b"IDAT" else b""
        place += length + 12
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(-1, 1 + width * channels)
    rows, above = [], [0] * (width * channels)
    for line in lines.tolist():
        above = unfiltered(line[0], line[1:], above, channels)
        rows.append(above)
    return np.array(rows, np.uint8).reshape(len(rows), width, channels)[:, :, :3]


def unfiltered(kind, line, above, step):
    if kind == 0:
        return line
    if kind == 2:
        return [(one + up) & 255 for one, up in zip(line, above, strict=True)]
    found = [0] * len(line)
    for at, one in enumerate(line):
        left, up, corner = (found[at - step], above[at], above[at - step]) if at >= step else (0, above[at], 0)
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + up) // 2
        else:
            guess = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
        found[at] = (one + guess) & 255
    return found


def test_nothing_runs_and_nothing_is_refused_or_asked_for(page, tmp_path):
    done = chromium(tmp_path, "--dump-dom", page.as_uri())
    document, said = done.stdout.decode(), done.stderr.decode(errors="replace")

    assert "<title>" in document
    assert "owned" not in document.partition("<title>")[2].partition("</title>")[0].replace("title='owned'", "")
    assert "<script" not in document
    assert "<img" not in document
    assert "&lt;script&gt;" in document
    assert "Content Security Policy" not in said
    assert "example.org" not in said


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bars_and_paper_have_the_colours_of_the_scheme(page, tmp_path, scheme):
    wish = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    chromium(tmp_path / "p", *wish, "--window-size=700,1300", f"--screenshot={tmp_path / 'shot.png'}", page.as_uri())
    seen = pixels((tmp_path / "shot.png").read_bytes())

    def many(colour):
        return int((np.abs(seen.astype(int) - np.array(colour)) <= 3).all(axis=2).sum())

    assert tuple(seen[2, 2]) == PAPER[scheme]
    assert many(GREEN[scheme]) > 1_000
    assert many(RED[scheme]) > 500
    assert many(PAPER["dark" if scheme == "light" else "light"]) == 0


def test_what_the_page_says_is_what_the_json_says(page, capsys):
    report(str(page.parent / "run"), as_json=True)
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    books = said["runs"][0]["run"]["documents"]["books"]

    assert f"{books['read']:,} documents were read" in page.read_text()
