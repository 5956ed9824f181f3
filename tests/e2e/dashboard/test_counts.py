"""What the dashboard counts is what the books of the run and the commands say."""

import json
from itertools import pairwise

import pytest
from tests.dashboard_runs import SCRIPT, books, choose_run, funnel_rows, go, gristmill, number

pytestmark = [pytest.mark.heavy, pytest.mark.e2e, pytest.mark.xdist_group("browser")]


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


def ledger(work, output):
    lines = (work / output / ".gristmill" / "ledger.jsonl").read_text().splitlines()
    return [record for line in lines if "counts" in (record := json.loads(line))]


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
