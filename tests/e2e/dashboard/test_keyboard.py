"""Everything the dashboard offers can be reached and moved without a mouse, and is announced."""

import json

import pytest
from tests.dashboard_runs import SCREENS, go

pytestmark = [pytest.mark.heavy, pytest.mark.e2e, pytest.mark.xdist_group("browser")]

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


def test_a_worker_opens(page):
    go(page, "workers")
    page.until("document.querySelector('.square')")
    page.run("document.querySelector('.square').click()")
    assert "tasks in" in page.text("main .card:nth-of-type(2) .lead, main div .card .lead")
