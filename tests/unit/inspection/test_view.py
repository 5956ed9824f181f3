"""Each step of a view leads to the page it should, with a condition and without one."""

import json

import pytest

from gristmill.errors import ConfigError
from gristmill.inspection.dataset import Dataset
from gristmill.inspection.view import View


@pytest.fixture
def view(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"n": n, "text": f"text {n}"}) + "\n" for n in range(100)))
    with Dataset(str(tmp_path)) as dataset:
        shown = View(dataset, page_rows=10)
        shown.first()
        yield shown


def numbers(view):
    return [located.row.values["n"] for located in view.rows]


def test_pages_of_wanted_rows_lead_forwards_and_back(view):
    view.want("n % 2 == 0")
    pages = [numbers(view)]
    for step in (view.next, view.next, view.previous, view.previous):
        step()
        pages.append(numbers(view))

    assert pages == [
        [*range(0, 20, 2)],
        [*range(20, 40, 2)],
        [*range(40, 60, 2)],
        [*range(20, 40, 2)],
        [*range(0, 20, 2)],
    ]
    assert "first page" in view.previous()
    view.want("")
    assert numbers(view) == [*range(10)]


def test_a_step_beyond_the_end_leaves_the_page_as_it_is(view):
    view.last()
    assert numbers(view) == [*range(90, 100)]
    assert "last page" in view.next()
    assert numbers(view) == [*range(90, 100)]


def test_a_search_shows_the_row_it_finds_first_and_can_be_stopped(view):
    view.find("text 5", view.dataset.start)
    assert numbers(view)[0] == 5
    view.find("text 5", view.rows[0].end)
    assert numbers(view)[0] == 50
    assert "stopped" in view.find("nowhere", view.dataset.start, lambda _: False)
    assert "not found" in view.find("nowhere", view.dataset.start)
    assert numbers(view)[0] == 50


def test_a_sample_leads_back_and_a_wrong_condition_changes_nothing(view):
    view.next()
    view.sample()
    assert numbers(view) != [*range(10, 20)]
    view.previous()
    assert numbers(view) == [*range(10, 20)]
    with pytest.raises(ConfigError):
        view.want("nn > 1")
    assert numbers(view) == [*range(10, 20)]
