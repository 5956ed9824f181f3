"""What the dashboard draws is seen, in both themes: bars, lines, squares, and a run that is still going on."""

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.dashboard_runs import (
    COMMAND,
    OWN,
    SCREENS,
    assert_nothing_forbidden_happened,
    books,
    choose_run,
    documents,
    go,
    number,
    recipe,
    write,
)

pytestmark = [pytest.mark.heavy, pytest.mark.e2e, pytest.mark.xdist_group("browser")]

PICTURES = Path(__file__).parents[3] / "build" / "dashboard"


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
