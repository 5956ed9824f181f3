"""`Modify`: change columns with modifiers or functions."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, TypeVar

from gristmill.errors import ConfigError
from gristmill.stages.base import ProcessingStage, join_names
from gristmill.stages.text.modifiers.document_modifier import DocumentModifier
from gristmill.stages.text.modifiers.modify_columns import modify_column, modify_columns
from gristmill.tasks import DocumentBatch

Modifier = Callable[..., object] | DocumentModifier
T = TypeVar("T")


@dataclass
class Modify(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Apply modifiers or functions of a value, in order, each to its input field.

    `input_fields` is one field for all, a field for each, or a list of fields for each: a modifier of several fields is
    called with them as keywords and needs an output field. Without `output_fields` a field is changed in place. A
    missing value stays missing; only a function of several fields gets to see a None.
    """

    adds_only_declared_columns: ClassVar[bool] = True

    modifier_fn: Modifier | list[Modifier]
    input_fields: str | list[str] | list[list[str]] = "text"
    output_fields: str | list[str | None] | None = None
    _: KW_ONLY
    name: str = ""

    def __post_init__(self) -> None:
        if not self._modifiers():
            raise ConfigError("Modify: expected at least one modifier; got an empty list")
        for modifier in self._modifiers():
            if not callable(modifier) and not isinstance(modifier, DocumentModifier):
                raise ConfigError(
                    f"Modify: expected modifier_fn to be a DocumentModifier or a function; got {modifier!r}"
                )
        self._outputs()
        self.name = self.name or self.default_name()

    def default_name(self) -> str:
        return join_names(self._modifiers())

    def inputs(self) -> tuple[list[str], list[str]]:
        made: set[str] = set()
        needed: dict[str, None] = {}
        for fields, output in zip(self._inputs(), self._outputs(), strict=True):
            needed |= dict.fromkeys(field for field in fields if field not in made)
            made.add(output)
        return ["data"], list(needed)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(dict.fromkeys(self._outputs()))

    def process(self, task: DocumentBatch) -> DocumentBatch:
        for modifier, fields, output in zip(self._modifiers(), self._inputs(), self._outputs(), strict=True):
            if len(fields) > 1:
                columns = {field: task.column(field) for field in fields}
                task = task.with_column(output, modify_columns(modifier, columns))
                continue
            before = task.column(fields[0])
            after = modify_column(modifier, before)
            # Untouched, the column keeps its JSON text, and a writer copies it byte for byte.
            if after is not before or output != fields[0]:
                task = task.with_column(output, after)
        return task

    def _modifiers(self) -> list[Modifier]:
        return list(self.modifier_fn) if isinstance(self.modifier_fn, list | tuple) else [self.modifier_fn]

    def _inputs(self) -> list[list[str]]:
        given = self.input_fields if isinstance(self.input_fields, list | tuple) else [self.input_fields]
        groups = [list(fields) if isinstance(fields, list | tuple) else [fields] for fields in given]
        if not all(fields and all(isinstance(field, str) for field in fields) for fields in groups):
            raise ConfigError(f"Modify: expected input_fields to be names of fields; got {self.input_fields!r}")
        return self._for_each(groups, "input_fields")

    def _outputs(self) -> list[str]:
        given = self.output_fields if isinstance(self.output_fields, list | tuple) else [self.output_fields]
        return [
            self._in_place(fields) if output is None else output
            for output, fields in zip(self._for_each(given, "output_fields"), self._inputs(), strict=True)
        ]

    def _in_place(self, fields: list[str]) -> str:
        if len(fields) > 1:
            raise ConfigError(f"Modify: expected output_fields, to know where what is made of {fields} goes; got none")
        return fields[0]

    def _for_each(self, values: Sequence[T], option: str) -> list[T]:
        number = len(self._modifiers())
        if len(values) not in (1, number):
            raise ConfigError(
                f"Modify: expected one value of {option}, or one for each of {number} modifiers; got {list(values)!r}"
            )
        return list(values) * (number if len(values) == 1 else 1)
