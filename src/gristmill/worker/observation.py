"""`Observation`: what a run records about its documents, as its user wants it."""

from dataclasses import dataclass
from typing import Literal

from gristmill.errors import ConfigError

Level = Literal["full", "counts", "off"]
LEVELS: tuple[Level, ...] = ("full", "counts", "off")


@dataclass(frozen=True)
class Observation:
    """What a run records about its documents, beside the books.

    `level`   "full": how every measure is distributed, and examples of documents with the beginning of their texts;
              "counts": the same without examples, so that no text of any document is kept; "off": nothing
    `slices`  columns by whose values documents are counted, with what became of them. Without a word about it `source`
              and `language`, where a stage or the format has made columns of them; those that are named here are also
              looked for in JSON lines
    """

    level: Level = "full"
    slices: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ConfigError(f"observe: expected one of {', '.join(LEVELS)}; got {self.level!r}")
        given: object = self.slices  # by somebody who may have written one name in place of a list
        if given is not None:
            if not isinstance(given, list | tuple) or not all(isinstance(name, str) and name for name in given):
                raise ConfigError(f"slices: expected a list of names of columns; got {given!r}")
            object.__setattr__(self, "slices", tuple(given))

    @classmethod
    def of(cls, given: "Level | Observation") -> "Observation":
        """Return what somebody asked for by a level alone, or in full."""
        return given if isinstance(given, Observation) else cls(given)

    @property
    def is_on(self) -> bool:
        return self.level != "off"


NOTHING = Observation("off")
