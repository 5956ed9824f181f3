"""`TextScreen`: a text that is longer than the terminal, until a key leads back."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static


class TextScreen(Screen[None]):
    """Text on a screen of its own. What is shown is plain: nothing in it is read as markup."""

    CSS = "TextScreen #title { height: 1; background: $panel; }"
    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,enter", "app.pop_screen", "back")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        yield Static(self._title, markup=False, id="title")
        with VerticalScroll():
            yield Static(self._text, markup=False, id="shown")
        yield Footer()
