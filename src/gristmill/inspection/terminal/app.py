"""`look`: a dataset in a terminal: a page of rows, the row at hand in full, and keys for every step.

What takes time runs in a thread, one step at a time, and Escape stops it. Values are put on the screen as plain text:
what could act on a terminal is escaped by `show`, and nothing is read as markup.
"""

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.css.query import NoMatches
from textual.widget import Widget
from textual.widgets import DataTable, Footer, Input, Static
from textual.worker import get_current_worker

from gristmill.errors import GristmillError
from gristmill.inspection.columns import of_row
from gristmill.inspection.dataset import Dataset, Located
from gristmill.inspection.difference import compare
from gristmill.inspection.labels import Label, Labels
from gristmill.inspection.show import brief, whole
from gristmill.inspection.statistics import measure
from gristmill.inspection.terminal.text_screen import TextScreen
from gristmill.inspection.view import GoOn, View
from gristmill.inspection.words import difference_lines, statistics_lines

_CELL_CHARS = 60
Part = TypeVar("Part", bound=Widget)
_LOOKED_S = 0.5  # between two looks at how far counting is
_MARKS: dict[Label | None, str] = {None: " ", "good": "+", "bad": "-"}


@dataclass(frozen=True)
class Opened:
    """What is looked at, and how: columns to show, labels to give, the column of ids."""

    dataset: Dataset
    columns: Sequence[str] = ()
    labels: Labels | None = None
    id_field: str = "id"
    where: str = ""
    search: str = ""


def look(opened: Opened) -> None:
    """Show a dataset until the user leaves."""
    InspectApp(opened).run()


class InspectApp(App[None]):
    """The screen. A `View` knows which rows are shown; this draws them and asks for the next step."""

    CSS = """
    #title, #status { height: 1; background: $panel; color: $text; }
    #rows { height: 1fr; }
    #row { height: 1fr; border-top: solid $primary; }
    #ask { dock: bottom; display: none; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,pagedown,right", "step('next')", "next", priority=False),
        Binding("p,pageup,left", "step('previous')", "previous"),
        Binding("home", "step('first')", "first", show=False),
        Binding("end", "step('last')", "last", show=False),
        Binding("colon", "ask('row')", "row", key_display=":"),
        Binding("slash", "ask('search')", "search", key_display="/"),
        Binding("n", "again", "found next", show=False),
        Binding("w", "ask('where')", "where"),
        Binding("c", "ask('columns')", "columns"),
        Binding("s", "step('sample')", "sample"),
        Binding("h", "statistics", "histograms"),
        Binding("g", "label('good')", "good"),
        Binding("b", "label('bad')", "bad"),
        Binding("u", "label('')", "unlabel", show=False),
        Binding("d", "ask('diff')", "diff"),
        Binding("escape", "stop", "stop", show=False),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self._opened, self._dataset = opened, opened.dataset
        self._columns = list(opened.columns) or opened.dataset.columns()
        self._view = View(opened.dataset)
        self._searched = opened.search
        self._asked = ""
        self._said = ""

    def compose(self) -> ComposeResult:
        yield Static(markup=False, id="title")
        yield DataTable(cursor_type="row", zebra_stripes=True, id="rows")
        with VerticalScroll(id="row"):
            yield Static(markup=False, id="text")
        yield Static(markup=False, id="status")
        yield Input(id="ask")
        yield Footer()

    def _part(self, selector: str, kind: type[Part]) -> Part:
        """A part of the first screen, even while a text covers it: a step may end meanwhile."""
        screens = self.screen_stack
        if not screens:
            raise NoMatches(f"expected a screen with {selector}; it was left")
        return screens[0].query_one(selector, kind)

    def unless_left(self, draw: Callable[[], None]) -> None:
        """Draw what a timer or a thread brings: the screen may be gone by then, and nobody misses it."""
        with contextlib.suppress(NoMatches):
            draw()

    def _from_thread(self, draw: Callable[[], None]) -> None:
        self.call_from_thread(self.unless_left, draw)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the first screen do nothing while a text covers it."""
        return len(self.screen_stack) == 1 or action in {"quit", "pop_screen"}

    def on_mount(self) -> None:
        """Show the first page, and start counting rows."""
        threading.Thread(target=self._dataset.count_rows, daemon=True).start()
        self.set_interval(_LOOKED_S, lambda: self.unless_left(self.draw_title))
        where, search = self._opened.where, self._opened.search
        if where:
            self._run(lambda go_on: self._view.want(where, go_on))
        elif search:
            self._run(lambda go_on: self._view.find(search, self._dataset.start, go_on))
        else:
            self._run(self._view.first)

    # Steps, each in a thread

    @work(thread=True, exclusive=True)
    def _run(self, step: Callable[[GoOn], str]) -> None:
        worker = get_current_worker()
        told = [-1]

        def go_on(share: float) -> bool:
            if int(share * 100) != told[0]:
                told[0] = int(share * 100)
                words = f"looking … {told[0]} % (Esc stops)"
                self._from_thread(lambda: self._tell(words))
            return not worker.is_cancelled

        try:
            said = step(go_on)
        except (GristmillError, OSError) as error:
            said = str(error)
        self._from_thread(lambda: self._draw(said))

    def action_step(self, name: str) -> None:
        """Go to another page."""
        self._tell("reading …")
        self._run(getattr(self._view, name))

    def action_stop(self) -> None:
        """End the step that is under way, or the question."""
        if self._part("#ask", Input).display:
            self._hide_question()
        else:
            self.workers.cancel_all()

    def action_again(self) -> None:
        """Continue the search after the row at hand."""
        if not self._searched:
            self._tell("nothing was searched for yet: / asks for a text")
            return
        text, located = self._searched, self._at_hand()
        place = located.end if located is not None else self._dataset.start
        self._run(lambda go_on: self._view.find(text, place, go_on))

    @work(thread=True, exclusive=True)
    def action_statistics(self) -> None:
        """Measure the columns on a sample."""
        self._from_thread(lambda: self._tell("measuring …"))
        try:
            found = measure(self._dataset, self._columns, seed=0, wanted=self._view.wanted)
            text = "\n".join(f"{name}  {lines}\n" if name else lines for name, lines in statistics_lines(found))
        except (GristmillError, OSError) as error:
            text = brief(str(error))
        self._from_thread(lambda: self._show_text("columns", text))

    @work(thread=True, exclusive=True)
    def _compare(self, path: str) -> None:
        self._from_thread(lambda: self._tell("comparing: both datasets are read …"))
        try:
            with Dataset(path) as there:
                found = compare(self._dataset, there, id_field=self._opened.id_field)
                text = "\n".join(difference_lines(self._dataset, there, found, self._opened.id_field))
        except (GristmillError, OSError) as error:
            text = brief(str(error))
        self._from_thread(lambda: self._show_text(f"compared with {brief(path)}", text))

    def _show_text(self, title: str, text: str) -> None:
        self._tell("")
        self.push_screen(TextScreen(title, text))

    # Questions

    def action_ask(self, what: str) -> None:
        """Ask for a row, a text, a condition, columns, or another dataset."""
        ask = self._part("#ask", Input)
        before = {"where": self._view.wanted.where.source if self._view.wanted.where else "", "search": self._searched}
        before["columns"] = ",".join(self._columns)
        ask.placeholder = {
            "row": "number of a row", "search": "text to search for", "columns": "columns, separated by commas",
            "where": "condition, such as score > 0.5; empty shows all rows", "diff": "path of the other dataset",
        }[what]  # fmt: skip
        ask.value, self._asked = before.get(what, ""), what
        ask.display = True
        ask.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do what was asked for."""
        value, what = event.value.strip(), self._asked
        self._hide_question()
        if what == "row":
            self._jump(value)
        elif what == "search" and value:
            self._searched = value
            located = self._at_hand()
            place = located.place if located is not None else self._dataset.start
            self._run(lambda go_on: self._view.find(value, place, go_on))
        elif what == "where":
            self._run(lambda go_on: self._view.want(value, go_on))
        elif what == "columns":
            self._choose_columns([name.strip() for name in value.split(",") if name.strip()])
        elif what == "diff" and value:
            self._compare(value)

    def _hide_question(self) -> None:
        self._part("#ask", Input).display = False
        self._part("#rows", DataTable).focus()

    def _jump(self, value: str) -> None:
        digits = value.replace(",", "")
        if not digits.isdecimal():
            self._tell(f"expected the number of a row; got {value!r}")
            return
        self._run(lambda go_on: self._view.jump(int(digits), go_on))

    def _choose_columns(self, names: list[str]) -> None:
        try:
            self._dataset.check_columns(names)
        except GristmillError as error:
            self._tell(str(error))
            return
        self._columns = names or self._dataset.columns()
        self._draw("")

    # Labels

    def action_label(self, label: str) -> None:
        """Give the row at hand a label, and go on to the next one."""
        located, labels = self._at_hand(), self._opened.labels
        if labels is None:
            self._tell("labels: start with --labels DIR to keep them")
            return
        if located is None or located.row.damage:
            self._tell("labels: there is no whole row here")
            return
        given: Label | None = "good" if label == "good" else "bad" if label == "bad" else None
        try:
            labels.put(self._dataset.source(located.place), located.row.values, given)
        except GristmillError as error:  # a full disk
            self._tell(str(error))
            return
        table = self._part("#rows", DataTable)
        table.update_cell_at((table.cursor_row, 0), Text(_MARKS[given]))  # type: ignore[arg-type]
        table.move_cursor(row=table.cursor_row + 1)
        counts = labels.counts()
        self._tell(f"{counts['good']:,} good, {counts['bad']:,} bad in {labels.directory}")

    # Drawing

    def _at_hand(self) -> Located | None:
        row = self._part("#rows", DataTable).cursor_row
        return self._view.rows[row] if 0 <= row < len(self._view.rows) else None

    def _tell(self, said: str) -> None:
        self._said = said
        self._part("#status", Static).update(brief(said))

    def draw_title(self) -> None:
        """Say what is looked at, and how many rows are known."""
        paths = self._dataset.paths
        files = brief(paths[0]) if len(paths) == 1 else f"{len(paths):,} files"
        where = self._view.wanted.where
        condition = f" · where {brief(where.source)}" if where is not None else ""
        self._part("#title", Static).update(f"{files} · {self._dataset.num_rows()} rows{condition}")

    def _draw(self, said: str) -> None:
        table = self._part("#rows", DataTable)
        table.clear(columns=True)
        table.add_columns(*(Text(name) for name in (" ", "row", *map(brief, self._columns))))
        for located in self._view.rows:
            table.add_row(*self._cells(located))
        self.draw_title()
        self._tell(said)
        self._draw_row()

    def _cells(self, located: Located) -> list[Text]:
        labels = self._opened.labels
        mark = _MARKS[labels.of(self._dataset.source(located.place))] if labels is not None else " "
        cells = [Text(mark), Text(str(self._dataset.row_at(located.place)))]
        if located.row.damage:
            return [*cells, Text(brief(f"damaged: {located.row.damage}"), style="red")]
        values = (brief(of_row(located.row.values, name)) for name in self._columns)
        return [*cells, *(Text(v if len(v) <= _CELL_CHARS else f"{v[: _CELL_CHARS - 1]}…") for v in values)]

    def on_data_table_row_highlighted(self) -> None:
        """Show the row at hand in full."""
        self._draw_row()

    def _draw_row(self) -> None:
        located = self._at_hand()
        text = "no rows" if located is None else _in_full(located, brief(self._dataset.place_name(located.place)))
        self._part("#text", Static).update(text)


def _in_full(located: Located, name: str) -> str:
    if located.row.damage:
        return f"{name}\ndamaged: {brief(located.row.damage)}\n{whole(located.row.raw)}"
    parts = [f"{brief(column)}\n{whole(value)}" for column, value in located.row.values.items()]
    return "\n\n".join([name, *parts])
