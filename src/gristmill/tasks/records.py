"""`RecordBatch`: records as a user's code gave them, one dict each, on their way to becoming documents.

Values are kept as they are, of whatever type: the code after gets the very objects the code before gave. Nothing is
known here of columns and types; `records_table` makes a table once records are documents. Large `bytes`
travel between processes beside the pickle (`serialization.py`). No file is read or written here.
"""

import pickle
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import msgspec
import pyarrow as pa

from gristmill.errors import StageError
from gristmill.tasks.batch import Batch, ItemRecord, number_or_text
from gristmill.tasks.json_lines import JSON_MARK, infer, replace_surrogates

Record = dict[str, Any]

_NAMES = ("id", "warc_id", "url", "title")  # fields that may name a record, the most reliable first
_MOST_BYTES = 2**31 - 1  # of an Arrow column with offsets of 32 bits
_OVERHEAD_BYTES = 64  # of a value that is neither text nor bytes: for the bound on memory, not for the books
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}")  # of an object in memory, where its class has no repr of its own
_encoder = msgspec.json.Encoder(enc_hook=str, decimal_format="number")


class RecordBatch(Batch[list[Record]]):
    """A batch of records: dicts whose values are anything that can be pickled."""

    holds_user_objects: ClassVar[bool] = True  # so they are pickled by value, if their class is in a script

    def __init__(self, dataset_name: str, data: Iterable[Record]) -> None:
        super().__init__(dataset_name, list(data))

    @property
    def num_items(self) -> int:
        return len(self.data)

    @property
    def nbytes(self) -> int:
        return sum(map(record_bytes, self.data))

    def take(self, rows: Sequence[int]) -> Self:
        return self._with([self.data[row] for row in rows])

    @classmethod
    def concat(cls, batches: Sequence[Self]) -> Self:
        if not batches:
            raise StageError(f"{cls.__name__}.concat: expected at least one batch; got none")
        return batches[0]._with([record for batch in batches for record in batch.data])

    def item(self, row: int) -> ItemRecord:
        """Text and numbers in words, and the first value that is bytes as payload."""
        record = self.data[row]
        payload = next((value for value in record.values() if isinstance(value, bytes)), None)
        shown = {str(name): _shown(value) for name, value in record.items() if not isinstance(value, bytes)}
        return ItemRecord(name_of_record(record), ", ".join(self.sources()), text=_json(shown), payload=payload)

    def _with(self, records: list[Record]) -> Self:
        new = self.__copy__()
        new.data = records
        new._stage_perf, new._metadata = list(self._stage_perf), dict(self._metadata)
        return new


def name_of_record(record: Mapping[str, object]) -> str:
    """What a record calls itself; "" if it has no name."""
    found = (record[name] for name in _NAMES if record.get(name) is not None)
    return str(next(found, ""))


def record_bytes(record: Mapping[str, object]) -> int:
    """About how much memory the values of a record take."""
    return sum(_value_bytes(value, 3) for value in record.values())


def _value_bytes(value: object, deep: int) -> int:
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple) and deep:
        return sum(_value_bytes(entry, deep - 1) for entry in value)
    size = getattr(value, "nbytes", None)
    return size if isinstance(size, int) else _OVERHEAD_BYTES


_SENT = {str, bytes, int, float, bool, type(None)}  # nearly all values: nothing else is tried


def why_not_sent(record: Record) -> str | None:
    """Why a record cannot go to another process, in the words of pickle; None if it can.

    What is noticed here costs one record. A batch that cannot be packed ends its worker.
    """
    if all(type(value) in _SENT or _is_texts(value) for value in record.values()):
        return None
    import cloudpickle  # takes 20 ms

    try:
        cloudpickle.dumps(record)
    except (TypeError, ValueError, AttributeError, RecursionError, pickle.PicklingError) as error:
        return str(error)
    return None


def _is_texts(value: object) -> bool:
    return type(value) is list and all(type(entry) in _SENT for entry in value)


def _shown(value: object) -> object:
    return value if isinstance(value, str | bool | int | list | dict) else number_or_text(value)


def _json(shown: Mapping[str, object]) -> str:
    try:
        return _encoder.encode(shown).decode()
    except (TypeError, ValueError, RecursionError):  # keys or texts that JSON cannot hold
        return str(shown)


# Records to columns, once they are documents.


def records_table(records: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> pa.Table:
    """Return a table that says what the records say: these `columns` first, then others as they occur.

    A column has the Arrow type of its values where there is one that holds them all exactly; else it is a JSON column.
    A column without any value is text, so that a table with no rows has the types of most others. A value that has no
    words of its own, or different ones in every run, raises StageError.
    """
    names = dict.fromkeys([*columns, *(name for record in records for name in record)])
    if any(type(name) is not str for name in names):
        records = [{str(name): value for name, value in record.items()} for record in records]
        names = dict.fromkeys(str(name) for name in names)
    made = [_column(name, [record.get(name) for record in records]) for name in names]
    return pa.Table.from_arrays([column for _, column in made], schema=pa.schema([field for field, _ in made]))


def _column(name: str, values: list[Any]) -> tuple[pa.Field, pa.Array | pa.ChunkedArray]:
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pa.field(name, pa.string()), pa.nulls(len(values), pa.string())
    if kinds == {bytes}:
        large = sum(len(value) for value in values if value is not None) > _MOST_BYTES
        kind = pa.large_binary() if large else pa.binary()
        return pa.field(name, kind), pa.array(values, kind)
    if str in kinds:
        values = [_sound(value) if type(value) is str else value for value in values]
    array = infer(values)
    if array is not None and (not pa.types.is_nested(array.type) or array.to_pylist() == values):
        return pa.field(name, array.type), array
    try:
        texts = [None if value is None else _exact_encoder.encode(_ordered(value)).decode() for value in values]
    except (TypeError, ValueError, RecursionError) as error:
        raise StageError(f"column {name!r}: expected values that JSON can hold; got {error}") from None
    return pa.field(name, pa.string(), metadata=JSON_MARK), pa.array(texts, pa.string())


def _ordered(value: Any) -> Any:
    """The value, with lists in place of sets: their order differs from process to process."""
    if isinstance(value, set | frozenset):
        return sorted(map(_ordered, value), key=_exact_encoder.encode)
    if isinstance(value, dict):
        return {name: _ordered(entry) for name, entry in value.items()}
    return [_ordered(entry) for entry in value] if isinstance(value, list | tuple) else value


def _in_words(value: Any) -> object:
    """An object in a form JSON has: a numpy number as a number, others as the text they turn into."""
    if type(value).__module__ == "numpy":
        return value.tolist()
    text = str(value)
    if _ADDRESS.search(text):
        raise TypeError(f"{text:.100}, whose text is another one in every run")
    return text


_exact_encoder = msgspec.json.Encoder(enc_hook=_in_words, decimal_format="number")


def _sound(text: str) -> str:
    """The text, with U+FFFD where it has half a pair of surrogates, which UTF-8 cannot hold."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return replace_surrogates(text)
    return text
