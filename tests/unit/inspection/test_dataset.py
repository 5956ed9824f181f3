"""Every way to a row gives that row, in JSON lines, compressed ones and Parquet; what is damaged says so."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.errors import ConfigError, NoInputError
from gristmill.inspection import byte_access, line_counts, lines_file, parquet_file, selection
from gristmill.inspection.dataset import Dataset
from gristmill.inspection.rows import Place
from gristmill.storage import open_read

NUM_ROWS = 500
FORMS = ("jsonl", "jsonl.gz", "parquet", "three files")


def row(number):
    text = f"text {number} été/{'x' * (number % 37)}"
    return {
        "id": f"d{number}",
        "n": number,
        "text": text,
        "meta": {"even": number % 2 == 0},
        "tags": [f"t{number % 5}"],
    }


def lines(numbers):
    # Every third with escapes, as other writers make them.
    return "".join(json.dumps(row(n), ensure_ascii=n % 3 == 0) + "\n" for n in numbers).encode()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """The same ways with little data: a page crosses blocks, and a compressed file is begun again."""
    monkeypatch.setattr(lines_file, "_READ_BYTES", 512)
    monkeypatch.setattr(lines_file, "_SCAN_BYTES", 2048)
    for module in (lines_file, line_counts):
        monkeypatch.setattr(module, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(byte_access, "_KEPT_BYTES", 8192)
    monkeypatch.setattr(open_read, "_PIECE_BYTES", 4096)
    monkeypatch.setattr(parquet_file, "_MOST_ROWS", 16)


@pytest.fixture(params=FORMS)
def path(request, tmp_path):
    form = request.param
    if form == "jsonl":
        (tmp_path / "a.jsonl").write_bytes(lines(range(NUM_ROWS)))
    elif form == "jsonl.gz":
        (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines(range(NUM_ROWS))))
    elif form == "parquet":
        pq.write_table(
            pa.Table.from_pylist([row(n) for n in range(NUM_ROWS)]), tmp_path / "a.parquet", row_group_size=70
        )
    else:
        (tmp_path / "a.jsonl").write_bytes(lines(range(100)))
        pq.write_table(
            pa.Table.from_pylist([row(n) for n in range(100, 250)]), tmp_path / "b.parquet", row_group_size=60
        )
        (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(lines(range(250, NUM_ROWS))[:-1]))  # no newline at the end
    return str(tmp_path)


def ids(rows):
    return [located.row.values.get("id", located.row.damage) for located in rows]


def all_ids(numbers):
    return [f"d{number}" for number in numbers]


def test_pages_hold_every_row_once_and_in_order(path):
    with Dataset(path) as dataset:
        seen, place = [], dataset.start
        while rows := dataset.page(place, 7):
            seen += ids(rows)
            place = rows[-1].end

    assert seen == all_ids(range(NUM_ROWS))


def test_going_back_from_anywhere_leads_where_it_should(path):
    with Dataset(path) as dataset:
        dataset.count_rows()
        for number in (NUM_ROWS, 260, 250, 249, 110, 101, 100, 99, 8, 1):
            back = dataset.back(dataset.at_row(number), 9)
            assert ids(dataset.page(back, 1)) == [f"d{max(0, number - 1 - 9)}"]
        assert ids(dataset.page(dataset.last(), 5)) == [f"d{NUM_ROWS - 1}"]


def test_once_counted_every_number_leads_to_its_row_and_back(path):
    with Dataset(path) as dataset:
        dataset.count_rows()
        assert (dataset.num_rows().rows, dataset.num_rows().is_exact) == (NUM_ROWS, True)
        for number in (1, 2, 71, 100, 101, 250, 251, 300, NUM_ROWS, 299, NUM_ROWS + 50):
            place = dataset.at_row(number)
            assert ids(dataset.page(place, 1)) == [f"d{min(number, NUM_ROWS) - 1}"]
            assert dataset.row_at(place) == (min(number, NUM_ROWS), True)


def test_before_lines_are_counted_numbers_are_estimates_that_say_so(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines(range(NUM_ROWS)))
    with Dataset(str(tmp_path)) as dataset:
        total, place = dataset.num_rows(), dataset.at_row(300)
        assert (total.is_exact, str(total)[0]) == (False, "≈")
        assert abs(total.rows - NUM_ROWS) < NUM_ROWS / 4
        assert abs(int(ids(dataset.page(place, 1))[0][1:]) - 299) < 100


@pytest.mark.parametrize(
    ("where", "text", "expected"),
    [
        ("n % 100 == 7", "", [7, 107, 207, 307, 407]),
        ("meta.even and n >= 494", "", [494, 496, 498]),
        (
            "'t3' in tags and len(text) > 45",
            "",
            [n for n in range(NUM_ROWS) if n % 5 == 3 and len(row(n)["text"]) > 45],
        ),
        ("", "text 123 été/", [123]),
        ("n < 124", "ext 12", [12, 120, 121, 122, 123]),
        ("", "t4", [n for n in range(NUM_ROWS) if n % 5 == 4 or "t4" in f"text {n}"]),
        ("", "not there", []),
        ("True", "", range(NUM_ROWS)),
    ],
)
def test_a_search_finds_the_rows_a_loop_over_them_finds(path, where, text, expected):
    with Dataset(path) as dataset:
        found = selection.first(dataset, dataset.wanted(where, text), NUM_ROWS + 1, dataset.start)
        later = selection.first(dataset, dataset.wanted(where, text), NUM_ROWS + 1, dataset.at_row(1))

    assert ids(found.rows) == all_ids(expected)
    assert (found.num_read, found.end) == (NUM_ROWS, None)
    assert ids(later.rows) == ids(found.rows)


def test_a_search_continues_behind_the_last_row_it_found(path):
    with Dataset(path) as dataset:
        wanted, place, seen = dataset.wanted("n % 9 == 0"), dataset.start, []
        while (found := selection.first(dataset, wanted, 4, place)).rows:
            assert len(found.rows) <= 4
            seen += ids(found.rows)
            place = found.rows[-1].end

    assert seen == all_ids(range(0, NUM_ROWS, 9))


def test_every_row_is_reached_one_by_one_from_the_end(path):
    with Dataset(path) as dataset:
        place, seen = dataset.last(), []
        while True:
            seen += ids(dataset.page(place, 1))
            if place == dataset.start:
                break
            place = dataset.back(place, 1)

    assert seen == all_ids(range(NUM_ROWS))[::-1]


@pytest.mark.parametrize(
    "line", [b'{"t": "a/b \\u00e9 c"}', b'{"t": "a\\/b \\u00e9 c"}', '{"t": ["x", {"y": "a/b é c"}]}'.encode()]
)
def test_a_text_is_found_however_json_writes_it(tmp_path, line):
    (tmp_path / "a.jsonl").write_bytes(b'{"t": "other"}\n' + line + b"\n")
    with Dataset(str(tmp_path)) as dataset:
        found = selection.first(dataset, dataset.wanted(text="a/b é"), 5, dataset.start)

    assert [located.place.offset for located in found.rows] == [15]


def test_a_sample_is_distinct_rows_of_the_asked_number_and_depends_on_the_seed(path):
    with Dataset(path) as dataset:
        one, same, other = (ids(selection.sampled(dataset, dataset.wanted(), 40, seed=seed).rows) for seed in (1, 1, 2))
        wanted = selection.sampled(dataset, dataset.wanted("n >= 480"), 5, seed=3)

    assert one == same != other
    assert len(set(one)) == len(one) >= 30  # neighbours of two places may be the same
    assert len(set(ids(wanted.rows))) == 5
    assert all(int(i[1:]) >= 480 for i in ids(wanted.rows))


def test_all_rows_are_the_sample_if_there_are_not_more(path):
    with Dataset(path) as dataset:
        assert ids(selection.sampled(dataset, dataset.wanted(), NUM_ROWS + 1, seed=0).rows) == all_ids(range(NUM_ROWS))


def test_damaged_lines_are_rows_that_say_so_and_are_counted_where_a_condition_cannot_judge_them(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(
        b'{"n": 1}\n{"n": 2\n\n  \n[3]\n\xff\xfe\n{"n": "four"}\n' + b"[" * 5000 + b'\n{"n": 5}'
    )
    with Dataset(str(tmp_path)) as dataset:
        rows = [located.row for located in dataset.page(dataset.start, 10)]
        found = selection.first(dataset, dataset.wanted("n > 0"), 10, dataset.start)
        searched = selection.first(dataset, dataset.wanted(text="four"), 10, dataset.start)

    assert [row.values.get("n") for row in rows] == [1, None, None, None, "four", None, 5]
    assert [bool(row.damage) for row in rows] == [False, True, True, True, False, True, False]
    assert rows[1].raw == '{"n": 2'
    assert ([located.row.values["n"] for located in found.rows], found.num_damaged, found.num_of_other_kind) == (
        [1, 5],
        4,
        1,
    )
    assert "4 damaged" in found.said()
    assert [located.row.values["n"] for located in searched.rows] == ["four"]


def test_a_line_too_long_to_hold_is_passed_over_by_its_length(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_file, "_LONGEST_LINE", 10_000)
    (tmp_path / "a.jsonl").write_bytes(b'{"n": 1}\n{"n": "' + b"x" * 50_000 + b'"}\n{"n": "three"}\n')
    with Dataset(str(tmp_path)) as dataset:
        rows = dataset.page(dataset.start, 5)
        found = selection.first(dataset, dataset.wanted(text="three"), 5, dataset.start)

        assert [located.row.damage[:21] for located in rows] == ["", "a line of 50,010 byte", ""]
        assert len(rows[1].row.raw) <= 2_000
        assert dataset.back(rows[2].place, 1) == rows[1].place
        assert [located.place for located in found.rows] == [rows[2].place]


def test_what_cannot_be_decompressed_ends_with_a_row_that_says_so(tmp_path):
    whole = gzip.compress(lines(range(NUM_ROWS)), mtime=0)
    (tmp_path / "a.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with Dataset(str(tmp_path)) as dataset:
        rows = dataset.page(dataset.start, NUM_ROWS)
        found = selection.first(dataset, dataset.wanted("n < 0"), 1, dataset.start)

    assert rows[0].row.values["id"] == "d0"
    assert "cut" in rows[-1].row.damage or "expected" in rows[-1].row.damage
    assert found.num_damaged >= 1


def test_a_parquet_file_that_is_none_and_a_row_group_that_is_damaged_are_rows_that_say_so(tmp_path):
    numbers = list(range(300))
    pq.write_table(
        pa.table({"n": numbers, "text": [f"{n} " * 50 for n in numbers]}), tmp_path / "a.parquet",
        row_group_size=100, compression="none", use_dictionary=False, write_page_checksum=True,
    )  # fmt: skip
    (tmp_path / "b.parquet").write_bytes(b"PAR1 nothing of the kind PAR1")
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    at = content.find(b"150 150 150")
    content[at : at + 3] = b"999"
    (tmp_path / "a.parquet").write_bytes(content)
    with Dataset(str(tmp_path)) as dataset:
        rows = dataset.page(dataset.start, 400)
        damaged = [located.row for located in rows if located.row.damage]
        found = selection.first(dataset, dataset.wanted(text="299 "), 5, dataset.start)

    assert [located.row.values["n"] for located in rows if not located.row.damage] == [*range(100), *range(200, 300)]
    assert damaged[0].damage.startswith("rows 101 to 200 cannot be read")
    assert "whole Parquet file" in damaged[1].damage
    assert ([located.row.values["n"] for located in found.rows], found.num_damaged) == ([299], 101)


def test_columns_that_only_later_rows_and_files_have_are_known(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"a": null}\n' * 300 + b'{"a": 1, "late": {"deep": "x"}}\n' * 300)
    (tmp_path / "b.jsonl").write_bytes(b'{"b": true}\n')
    with Dataset(str(tmp_path)) as dataset:
        assert dataset.kinds() == {"a": "number", "late": "record", "late.deep": "text", "b": "flag"}
        assert dataset.columns() == ["a", "late", "b"]


def test_what_cannot_be_looked_at_is_said_before_anything_is_read(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "x"}\n')
    with pytest.raises(NoInputError, match="inspect"):
        Dataset(str(tmp_path / "nothing"))
    with Dataset(str(tmp_path)) as dataset, pytest.raises(ConfigError, match="did you mean 'text'"):
        dataset.check_columns(["txt"])


def test_an_empty_file_has_no_rows(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"")
    pq.write_table(pa.table({"n": pa.array([], pa.int64())}), tmp_path / "b.parquet")
    with Dataset(str(tmp_path)) as dataset:
        dataset.count_rows()
        assert (dataset.page(dataset.start, 5), dataset.num_rows().rows) == ([], 0)
        assert dataset.back(Place(1, 0), 3) == Place(0, 0)
        assert dataset.page(dataset.at_row(5), 1) == []
        assert selection.sampled(dataset, dataset.wanted(), 5, seed=0).rows == []
