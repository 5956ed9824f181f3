"""Pieces of a page are read column by column, from the top; what is not a column is read line by line."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gristmill.kernels.layout.reading_order import lines_of, reading_order


def rows(x, width, tops, height=10):
    return [[x, top - height, x + width, top] for top in tops]


def order(boxes):
    return [region.tolist() for region in reading_order(np.array(boxes, float).reshape(-1, 4))]


def test_a_single_column_is_one_region():
    assert order(rows(50, 400, [700, 688, 640])) == [[0, 1, 2]]


def test_two_columns_are_read_one_after_the_other():
    left, right = rows(50, 200, [700, 688, 676]), rows(280, 200, [700, 688, 676])
    assert order([*left, *right]) == [[0, 1, 2], [3, 4, 5]]
    assert order([*right, *left]) == [[3, 4, 5], [0, 1, 2]]


def test_a_heading_across_columns_is_read_first_and_a_footer_last():
    heading, footer = [[50, 760, 480, 780]], [[50, 40, 480, 50]]
    left, right = rows(50, 200, [700, 688, 676]), rows(280, 200, [700, 688, 676])
    assert order([*left, *heading, *right, *footer]) == [[3], [0, 1, 2], [4, 5, 6], [7]]


def test_three_columns_are_read_from_left_to_right():
    columns = [rows(50 + 180 * k, 150, [700, 688]) for k in range(3)]
    assert order([*columns[2], *columns[0], *columns[1]]) == [[2, 3], [4, 5], [0, 1]]


def test_numbers_of_a_list_are_not_a_column():
    numbers, texts = rows(50, 8, [700, 688, 676]), rows(70, 380, [700, 688, 676])
    assert order([*numbers, *texts]) == [[0, 1, 2, 3, 4, 5]]


def test_cells_of_a_table_are_not_columns():
    cells = [[x, top - 10, x + 30, top] for top in (700, 688, 676) for x in (50, 200, 230, 400)]
    assert len(order(cells)) == 1


def test_lines_are_read_from_the_top_and_from_the_left():
    boxes = np.array([[200, 690, 240, 700], [50, 691, 100, 701], [50, 670, 90, 680]], float)
    assert [line.tolist() for line in lines_of(boxes, np.arange(3))] == [[1, 0], [2]]


def test_no_boxes_have_no_regions():
    assert order([]) == []


places = st.floats(0, 600, allow_nan=False)
any_boxes = st.lists(st.tuples(places, places, places, places), max_size=40)


@given(any_boxes)
def test_every_box_is_in_one_region_and_on_one_line(corners):
    boxes = np.array([[min(a, c), min(b, d), max(a, c), max(b, d)] for a, b, c, d in corners], float).reshape(-1, 4)
    regions = reading_order(boxes)
    assert sorted(np.concatenate([np.empty(0, int), *regions]).tolist()) == list(range(len(boxes)))
    for region in regions:
        lines = lines_of(boxes, region)
        assert sorted(np.concatenate(lines).tolist()) == sorted(region.tolist())


@given(any_boxes, st.floats(-100, 100), st.floats(-100, 100))
def test_moving_the_page_changes_nothing(corners, x, y):
    boxes = np.array([[min(a, c), min(b, d), max(a, c), max(b, d)] for a, b, c, d in corners], float).reshape(-1, 4)
    boxes = np.round(boxes)
    moved = boxes + np.round([x, y, x, y])
    assert [region.tolist() for region in reading_order(boxes)] == [region.tolist() for region in reading_order(moved)]
