"""Texts, ids, names and errors that were made to break the page are text wherever they stand."""

import json
from urllib.parse import quote

import pytest
from tests.dashboard_runs import (
    BIDI,
    MEGABYTE,
    NAMES,
    NUM_DROPPED,
    SCREENS,
    SCRIPT,
    SHOWN_BIDI,
    STYLE,
    choose_run,
    funnel_rows,
    go,
)

pytestmark = [pytest.mark.heavy, pytest.mark.e2e, pytest.mark.xdist_group("browser")]


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
