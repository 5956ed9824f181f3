"""The windows of rules, which hold the documents nearest to each bound, and the samples of reasons.

Arrays are those of `tally.py`. What gets in does not depend on the order in which documents come.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tally_layout import ELSEWHERE, NEAREST, NOBODY, SAMPLED
from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.words_of_bytes import Bytes

Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]
Keys = NDArray[np.uint64]
Windows = tuple[Doubles, Keys, Longs, Longs]  # distances, found, nearest, near_rows
OfRule = tuple[int, int, float, float, int]  # where its values begin and end, its bounds, what is added to rows
Given = tuple[Doubles, Bytes, Longs, Keys]  # values, kept, current, keys


@part
def _enter(
    base: int,
    distance: float,
    key: np.uint64,
    value_at: int,
    row: int,
    distances: Doubles,
    found: Keys,
    nearest: Longs,
    near_rows: Longs,
) -> None:
    """Put a document into a window, which is in order of distance and key and has each key once."""
    place = NEAREST
    for other in range(NEAREST - 1, -1, -1):
        nearer = distances[base + other]
        if nearer < distance or (nearer == distance and found[base + other] <= key):
            break
        place = other
    for other in range(place):
        if found[base + other] == key and nearest[base + other] != NOBODY:
            # The same text, and as near or nearer. If as near elsewhere, adding up decides which of the two it is.
            if distances[base + other] == distance and nearest[base + other] == ELSEWHERE:
                nearest[base + other], near_rows[base + other] = value_at, row
            return
    end = NEAREST - 1
    for other in range(place, NEAREST):
        if found[base + other] == key and nearest[base + other] != NOBODY:
            end = other  # the same text, and not as near
            break
    for other in range(end, place, -1):
        distances[base + other], found[base + other] = distances[base + other - 1], found[base + other - 1]
        nearest[base + other], near_rows[base + other] = nearest[base + other - 1], near_rows[base + other - 1]
    if place < NEAREST:
        distances[base + place], found[base + place] = distance, key
        nearest[base + place], near_rows[base + place] = value_at, row


@part
def consider(
    place: int,
    value: float,
    row: int,
    key: np.uint64,
    bounds: tuple[float, float],
    at_low: int,
    windows: Windows,
) -> None:
    """Enter a document into the window of the bound that it is nearest to, if it belongs there."""
    distances, found, nearest, near_rows = windows
    to_low, to_high = abs(value - bounds[0]), abs(value - bounds[1])
    at = at_low + 2 * NEAREST if to_high < to_low else at_low
    distance = min(to_low, to_high)
    # Measures that are whole numbers tie by the thousand at a threshold: most are excluded by their keys.
    if distance < distances[at] or (distance == distances[at] and key <= found[at]):
        _enter(at + 1 - NEAREST, distance, key, place, row, distances, found, nearest, near_rows)


@inline
def choose_kept(
    of_rule: OfRule,
    given: Given,
    at_low: int,
    windows: Windows,
) -> None:
    """Choose the nearest of those that a rule has kept. Nearly all are further away than the last of a window."""
    begin, end, low, high, offset = of_rule
    values, kept, current, keys = given
    distances = windows[0]
    last_low, last_high = _limits(low, high, at_low, distances)
    for place in range(begin, end):
        value = values[place]
        # What is not a number is not near anything, and nothing is near a bound that is not there.
        is_near = abs(value - low) <= last_low or abs(value - high) <= last_high
        if is_near and kept[place] != 0 and not np.isinf(value):
            row = current[place - begin] + offset
            consider(place, value, row, keys[row], (low, high), at_low, windows)
            last_low, last_high = _limits(low, high, at_low, distances)


@inline
def _limits(low: float, high: float, at_low: int, distances: Doubles) -> tuple[float, float]:
    """How far away the last document in each window of a side is."""
    last_low = distances[at_low] if not np.isinf(low) else -1.0
    last_high = distances[at_low + 2 * NEAREST] if not np.isinf(high) else -1.0
    return last_low, last_high


@part
def _sample(base: int, key: np.uint64, row_at: int, least: Keys, sampled: Longs) -> None:
    """Put a document into a sample, which is in order of keys and has each once."""
    place = SAMPLED
    while place > 0 and (sampled[base + place - 1] == NOBODY or key < least[base + place - 1]):
        place -= 1
    if place > 0 and least[base + place - 1] == key:
        if sampled[base + place - 1] == ELSEWHERE:
            sampled[base + place - 1] = row_at
        return
    for other in range(SAMPLED - 1, place, -1):
        least[base + other], sampled[base + other] = least[base + other - 1], sampled[base + other - 1]
    if place < SAMPLED:
        least[base + place], sampled[base + place] = key, row_at


@inline
def take_samples(
    reasons: int,
    gone_firsts: Longs,
    gone_rows: Longs,
    gone_places: Longs,
    keys: Keys,
    least: Keys,
    sampled: Longs,
) -> None:
    """Put the documents that were dropped for each reason into its sample."""
    for reason in range(reasons):
        base = gone_places[reason] * SAMPLED
        for place in range(gone_firsts[reason], gone_firsts[reason + 1]):
            key = keys[gone_rows[place]]
            if sampled[base + SAMPLED - 1] == NOBODY or key <= least[base + SAMPLED - 1]:
                _sample(base, key, place, least, sampled)
