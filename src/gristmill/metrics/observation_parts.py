"""`Part`: what was recorded in one call, as a file has it, and the way from there to `Observations`.

Recording makes a part for every call, so a part is what costs least to make: arrays as they are in memory, end to
end, and what is the same in every call (which rules there are) as bytes made once. The reader takes the trouble to
make objects of it. Numbers are little-endian; how wide those of an array are follows from its length.

Letters: R rules, E examples next to thresholds, S examples in samples, D documents.
"""

import json
from array import array
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise

import msgspec

from gristmill.metrics.observations import (
    EXCERPT_CHARS,
    Example,
    Labels,
    MeasureTally,
    Nearest,
    Observations,
    Sample,
    Side,
    Slices,
)
from gristmill.metrics.tally import NOT_A_NUMBER

SHORT_NOT_A_NUMBER = 32_767  # the slot of what is not a number, in 16 bits
WINDOWS = 4  # of a rule: low refused, low kept, high refused, high kept
_NOTHING = msgspec.Raw(b"\x90")  # an empty list in msgpack
_WHOLE_BITS = 32  # of a sum are fractions

Raw = bytes  # an array as it is in memory


class PartRule(msgspec.Struct, array_like=True, frozen=True):
    """Which measure it is: the fields that `MeasureTally` begins with, and one more."""

    stage: str
    stage_number: int
    position: int
    name: str
    measure: str
    low: float | None
    high: float | None
    condition: str | None
    decides: bool
    amount: str | None
    is_shown: bool = False  # with the documents next to its bounds, if there are any

    def tally(self, kept: Side, refused: Side, nearest: list[Nearest], labels: Labels | None = None) -> MeasureTally:
        """What is known of it."""
        return MeasureTally(
            *(self.stage, self.stage_number, self.position, self.name, self.measure, self.low, self.high),
            *(self.condition, self.decides, self.amount, kept, refused, nearest, labels),
        )


class PartDocuments(msgspec.Struct, array_like=True):
    """Documents of one task that are examples of something: D of them."""

    source: str
    place: str
    keys: Raw  # uint64[D]
    ids: Raw  # end to end, in UTF-8; with `json_ids` each is as its line has it
    id_ends: Raw  # uint32[D]
    texts: Raw  # the same
    text_ends: Raw
    json_ids: bool = False

    def unpacked(self) -> list[tuple[int, str, str, str, str]]:
        """Return what `Example` has after the value."""
        ids, texts = _cut(self.ids, self.id_ends), _cut(self.texts, self.text_ends)
        names = [_id_of(one) for one in ids] if self.json_ids else [_text(one) for one in ids]
        shown = (_text(text)[:EXCERPT_CHARS] for text in texts)
        each = zip(_numbers(self.keys, "Q"), names, shown, strict=True)
        return [(key, name, self.source, self.place, text) for key, name, text in each]


class Part(msgspec.Struct, array_like=True):
    """What was recorded in one call. A document that is an example several times is there once."""

    rules: msgspec.Raw = _NOTHING  # list[PartRule]
    sums: Raw = b""  # int64[R, 2, 2]: refused, kept; of whole numbers, and of fractions in 2 to the power of -32
    extremes: Raw = b""  # float64[R, 2, 2]: least, greatest; the other way round where there is nothing
    ends: Raw = b""  # where the slots of a side end: [R, 2]
    slots: Raw = b""  # int16; `counts` says how many values are in each
    counts: Raw = b""
    near: Raw = b""  # uint16[E]: which window, four of each rule
    near_values: Raw = b""  # float64[E]
    near_documents: Raw = b""  # uint32[E]: which of all documents of the part
    reasons: list[tuple[str, int, str]] = msgspec.field(default_factory=list)  # stage, its number, reason
    sampled: Raw = b""  # uint16[S]: of which reason
    sample_values: Raw = b""  # not a number where there is none
    sample_documents: Raw = b""
    documents: list[PartDocuments] = msgspec.field(default_factory=list)
    labels: list[tuple[PartRule, Labels]] = msgspec.field(default_factory=list)
    slices: dict[str, Slices] = msgspec.field(default_factory=dict)
    long_sums: dict[int, str] = msgspec.field(default_factory=dict)  # by side: those that 64 bits cannot hold

    def unpacked(self) -> Observations:
        """The same as `Observations`."""
        documents = [document for some in self.documents for document in some.unpacked()]
        tallies = self._tallies(self._windows(documents))
        tallies += [rule.tally(Side(), Side(), [], labels) for rule, labels in self.labels]
        fresh = Observations()
        fresh.add(Observations(tallies, self._samples(documents), self.slices))
        return fresh

    def _tallies(self, windows: dict[int, list[Example]]) -> list[MeasureTally]:
        rules, sides = _rules.decode(self.rules), self._sides()
        tallies = []
        for number, rule in enumerate(rules):
            refused, kept = sides[2 * number : 2 * number + 2]
            near = [windows.get(WINDOWS * number + place) or [] for place in range(WINDOWS)]
            bounds = (("low", rule.low, *near[:2]), ("high", rule.high, *near[2:])) if rule.is_shown else ()
            nearest = [Nearest(name, at, k, r) for name, at, r, k in bounds if at is not None]  # type: ignore[arg-type]
            tallies.append(rule.tally(kept, refused, nearest))
        return tallies

    def _sides(self) -> list[Side]:
        ends, slots = _numbers(self.ends, "I"), _numbers(self.slots, "h")
        counts = _numbers(self.counts, "I" if len(self.counts) == 2 * len(self.slots) else "q")
        slots = [NOT_A_NUMBER if slot == SHORT_NOT_A_NUMBER else slot for slot in slots]
        sums, extremes = _numbers(self.sums, "q"), _numbers(self.extremes, "d")
        sides = []
        for number, (first, end) in enumerate(pairwise([0, *ends])):
            whole, fraction = sums[2 * number : 2 * number + 2]
            total = int(self.long_sums.get(number, (whole << _WHOLE_BITS) + fraction))
            least, most = extremes[2 * number : 2 * number + 2]
            some = (least, most) if least <= most else (None, None)
            sides.append(Side(dict(zip(slots[first:end], counts[first:end], strict=True)), total, *some))
        return sides

    def _windows(self, documents: list[tuple[int, str, str, str, str]]) -> dict[int, list[Example]]:
        windows: dict[int, list[Example]] = {}
        each = _numbers(self.near, "H"), _numbers(self.near_values, "d"), _numbers(self.near_documents, "I")
        for window, value, number in zip(*each, strict=True):
            windows.setdefault(window, []).append(Example(value, *documents[number]))
        return windows

    def _samples(self, documents: list[tuple[int, str, str, str, str]]) -> list[Sample]:
        samples = [Sample(*reason) for reason in self.reasons]
        each = _numbers(self.sampled, "H"), _numbers(self.sample_values, "d"), _numbers(self.sample_documents, "I")
        for reason, value, number in zip(*each, strict=True):
            known = None if value != value else value  # noqa: PLR0124  # not a number is not itself
            samples[reason].examples.append(Example(known, *documents[number]))
        return samples


_rules = msgspec.msgpack.Decoder(list[PartRule])
_ids = msgspec.json.Decoder()


def encode_rules(rules: Sequence[PartRule]) -> msgspec.Raw:
    """Return rules as a part has them."""
    return msgspec.Raw(msgspec.msgpack.encode(rules))


def packed(observed: Observations) -> Part:
    """Return observations as one part. What is equal has the same bytes."""
    found = observed.in_order()
    documents: dict[tuple[str, str], dict[tuple[int, str, str], None]] = {}
    windows = [
        (WINDOWS * number + 2 * (window.bound == "high") + is_kept, example)
        for number, tally in enumerate(tally for tally in found.tallies if tally.labels is None)
        for window in tally.nearest
        for is_kept, examples in enumerate((window.refused, window.kept))
        for example in examples
    ]
    sampled = [(number, example) for number, sample in enumerate(found.samples) for example in sample.examples]
    for _, one in chain(windows, sampled):
        documents.setdefault((one.source, one.place), {}).setdefault((one.key, one.id, one.text))
    numbers = {
        (*document, *of): number
        for number, (of, document) in enumerate((of, each) for of, some in documents.items() for each in some)
    }

    def raw(given: list[tuple[int, Example]]) -> tuple[bytes, bytes, bytes]:
        values = [float("nan") if one.value is None else one.value for _, one in given]
        places = [numbers[one.key, one.id, one.text, one.source, one.place] for _, one in given]
        return array("H", [of for of, _ in given]).tobytes(), array("d", values).tobytes(), array("I", places).tobytes()

    tallies = [tally for tally in found.tallies if tally.labels is None]
    rules = encode_rules([_rule(tally) for tally in tallies])
    sides = [side for tally in tallies for side in (tally.refused, tally.kept)]
    labels = [(_rule(tally), tally.labels) for tally in found.tallies if tally.labels is not None]
    reasons = [(sample.stage, sample.stage_number, sample.reason) for sample in found.samples]
    shown = [_packed_documents(*of, list(some)) for of, some in documents.items()]
    part = Part(rules, *_raw_sides(sides), *raw(windows), reasons, *raw(sampled), shown, labels, found.slices)
    part.long_sums = {n: str(side.fixed_sum) for n, side in enumerate(sides) if _is_long(side)}
    return part


def _raw_sides(sides: list[Side]) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """Return sums, extremes, ends, slots and counts."""
    halves = [(0, 0) if _is_long(side) else divmod(side.fixed_sum, 1 << _WHOLE_BITS) for side in sides]
    some = [(side.least, side.greatest) for side in sides]
    extremes = [(1.0, 0.0) if least is None or most is None else (least, most) for least, most in some]
    slots = [SHORT_NOT_A_NUMBER if slot == NOT_A_NUMBER else slot for side in sides for slot in side.slots]
    counts = [count for side in sides for count in side.slots.values()]
    return (
        array("q", chain.from_iterable(halves)).tobytes(),
        array("d", chain.from_iterable(extremes)).tobytes(),
        array("I", accumulate(len(side.slots) for side in sides)).tobytes(),
        array("h", slots).tobytes(),
        array("I" if max(counts, default=0) < 1 << 32 else "q", counts).tobytes(),
    )


def _is_long(side: Side) -> bool:
    return abs(side.fixed_sum) >> (_WHOLE_BITS + 62) > 0


def _packed_documents(source: str, place: str, some: list[tuple[int, str, str]]) -> PartDocuments:
    ids, texts = [_bytes(name) for _, name, _ in some], [_bytes(text) for _, _, text in some]
    keys = array("Q", [key for key, _, _ in some]).tobytes()
    return PartDocuments(source, place, keys, *joined(ids), *joined(texts))


def _rule(tally: MeasureTally) -> PartRule:
    return PartRule(
        *(tally.stage, tally.stage_number, tally.position, tally.name, tally.measure, tally.low, tally.high),
        *(tally.condition, tally.decides, tally.amount, bool(tally.nearest)),
    )


def _numbers(raw: Raw, kind: str) -> list[int]:
    numbers: list[int] = memoryview(raw).cast("B").cast(kind).tolist()  # type: ignore[call-overload]
    return numbers


def joined(pieces: Sequence[bytes]) -> tuple[Raw, Raw]:
    """Return pieces end to end, and where each ends."""
    return b"".join(pieces), array("I", accumulate(map(len, pieces))).tobytes()


def _cut(pieces: Raw, ends: Raw) -> list[bytes]:
    view = memoryview(pieces)
    return [bytes(view[first:end]) for first, end in pairwise([0, *_numbers(ends, "I")])]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "ignore")


def _id_of(raw: bytes) -> str:
    """The id that a JSON line has, to be shown; empty if it has none."""
    try:
        found = _ids.decode(raw) if raw else None
    except (msgspec.MsgspecError, UnicodeDecodeError):  # half a surrogate pair, which Python takes
        found = json.loads(raw)
    return "" if found is None else shown_text(str(found))


def shown_text(text: str) -> str:
    """A text that every reader can take: cut, and without halves of characters."""
    cut = text[:EXCERPT_CHARS]
    return cut if cut.isascii() else cut.encode("utf-8", "backslashreplace").decode()[:EXCERPT_CHARS]
