"""The view in a terminal, driven by keys as a person would: what is on the screen is what is in the files."""

import asyncio
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("textual", reason="the extra `inspect`")

NUM_ROWS = 95
HOSTILE = "\x1b[2J\u202e[bold red]text[/] [@click=app.quit]x[/]"


def rows():
    made = [{"id": f"d{n}", "score": n / 10, "text": f"text {n}\nsecond line"} for n in range(NUM_ROWS)]
    made[1]["text"] = HOSTILE
    return made


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return str(tmp_path)


@pytest.fixture
def parquet(tmp_path):
    pq.write_table(pa.Table.from_pylist(rows()), tmp_path / "a.parquet", row_group_size=30)
    return str(tmp_path / "a.parquet")


class Screen:
    """What a person sees, and the keys they press."""

    def __init__(self, pilot):
        self._pilot, self.app = pilot, pilot.app

    async def press(self, *keys):
        for key in keys:
            await self._pilot.press(key)
        await self.app.workers.wait_for_complete()
        await self._pilot.pause()

    async def type(self, key, text):
        await self.press(key)
        self.app.query_one("#ask").value = text
        await self.press("enter")

    def text(self, name):
        return str(self.app.screen.query_one(f"#{name}").content)

    def column(self, name):
        table = self.app.query_one("#rows")
        names = [str(column.label) for column in table.columns.values()]
        return [str(table.get_row_at(number)[names.index(name)]) for number in range(table.row_count)]


def drive(path, steps, **options):
    """Run the app without a terminal, and what a person does in it."""
    from gristmill.inspection.dataset import Dataset
    from gristmill.inspection.terminal.app import InspectApp, Opened

    async def run():
        with Dataset(path) as dataset:
            app = InspectApp(Opened(dataset, **options))
            async with app.run_test(size=(120, 50)) as pilot:
                screen = Screen(pilot)
                await screen.press()
                await steps(screen)

    asyncio.run(run())


@pytest.mark.slow
def test_what_comes_after_the_screen_was_left_is_not_drawn(path):
    from textual.css.query import NoMatches

    left = []

    async def steps(screen):
        left.append(screen.app)

    drive(path, steps)
    with pytest.raises(NoMatches):
        left[0].draw_title()
    left[0].unless_left(left[0].draw_title)


@pytest.mark.slow
def test_pages_jumps_and_searches_show_the_rows_they_should(path):
    async def steps(screen):
        assert screen.column("id") == [f"d{n}" for n in range(20)]
        await screen.press("space")
        assert screen.column("id") == [f"d{n}" for n in range(20, 40)]
        await screen.press("p")
        assert screen.column("row")[:2] == ["1", "2"]
        await screen.press("p")
        assert "first page" in screen.text("status")
        await screen.type("colon", "64")
        assert screen.column("id")[0] == "d63"
        assert "text 63\nsecond line" in screen.text("text")
        await screen.type("slash", "text 91")
        assert screen.column("id") == [f"d{n}" for n in range(91, 95)]
        await screen.press("n")
        assert "not found from here to the end" in screen.text("status")
        await screen.press("end")
        assert screen.column("id")[-1] == "d94"
        await screen.press("space")
        assert "last page" in screen.text("status")
        await screen.press("s")
        assert len(set(screen.column("id"))) >= 10
        assert f"{NUM_ROWS} rows" in screen.text("title")

    drive(path, steps)


@pytest.mark.slow
def test_conditions_columns_and_histograms(path):
    async def steps(screen):
        assert screen.column("id") == [f"d{n}" for n in range(90, 95)]
        await screen.type("w", "scor > 1")
        assert "did you mean 'score'" in screen.text("status")
        await screen.type("w", "'text 7' in text")
        assert screen.column("id") == ["d7", *(f"d{n}" for n in range(70, 80))]
        assert "where 'text 7' in text" in screen.text("title")
        await screen.type("c", "score,id")
        assert screen.column("score")[0] == "0.7"
        await screen.press("h")
        assert "score  number" in screen.text("shown")
        assert "from the first 11 rows that are wanted" in screen.text("shown")
        await screen.press("space", "slash", "w", "g")  # keys of the screen below
        assert "score  number" in screen.text("shown")
        await screen.press("escape")
        assert screen.column("score")[0] == "0.7"
        await screen.type("w", "")
        assert screen.column("id")[0] == "d0"

    drive(path, steps, where="score >= 9")


@pytest.mark.slow
def test_labels_are_kept_shown_again_and_missed_without_a_directory(parquet, tmp_path):
    from gristmill.inspection.labels import Labels

    directory = str(tmp_path / "labels")

    async def give(screen):
        await screen.press("g", "b", "g", "up", "u")
        assert screen.column(" ")[:4] == ["+", "-", " ", " "]
        assert "1 good, 1 bad" in screen.text("status")

    async def again(screen):
        assert screen.column(" ")[:3] == ["+", "-", " "]
        await screen.press("b")
        assert "0 good, 2 bad" in screen.text("status")

    async def without(screen):
        await screen.press("g")
        assert "--labels DIR" in screen.text("status")

    drive(parquet, give, labels=Labels(directory))
    drive(parquet, again, labels=Labels(directory))
    drive(parquet, without)
    kept = [json.loads(line) for line in (tmp_path / "labels" / "bad.jsonl").read_text().splitlines()]
    assert {row["id"] for row in kept} == {"d0", "d1"}


@pytest.mark.slow
def test_nothing_in_a_document_acts_or_is_read_as_markup(path):
    async def steps(screen):
        await screen.press("down")
        assert "\\x1b[2J\\u202e[bold red]text[/] [@click=app.quit]x[/]" in screen.text("text")
        assert screen.column("text")[1].startswith("\\x1b[2J\\u202e[bold red]")
        drawn = screen.app.export_screenshot()
        assert "[bold" in drawn.replace("&#160;", " ")

    drive(path, steps)


@pytest.mark.slow
def test_a_dataset_is_compared_with_another(path, tmp_path):
    other = tmp_path / "other" / "b.jsonl"
    other.parent.mkdir()
    other.write_text("".join(json.dumps(row) + "\n" for row in rows()[:90]))

    async def steps(screen):
        await screen.type("d", str(other))
        assert "90  the same in both" in screen.text("shown")
        assert "5  only here" in screen.text("shown")
        await screen.press("q")
        await screen.type("d", "nothing/here")
        assert "expected" in screen.text("shown")

    drive(path + "/*.*", steps)
