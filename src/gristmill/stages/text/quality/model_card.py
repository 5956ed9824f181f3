"""`ModelCard`: what is known about a trained classifier, in `card.json` beside the model, for people and programs.

`train-classifier` writes it and `ApplyClassifier` reads it: whether the model's files are unchanged, how its log odds
become probabilities, and, by some rows with their scores, whether it answers here as it did where it was made. There is
no date in it: the same documents give the same card, byte for byte.
"""

from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.storage.atomic_write import checksum_of, write_file

CARD_FILE = "card.json"
ROWS_FILE = "rows.jsonl"
FORMAT = 1
DECIMALS = 6  # of a score: later digits differ between machines


class Documents(msgspec.Struct, frozen=True):
    """The documents of one class, those without text left out. The fingerprint is of the texts, in any order."""

    path: str
    documents: int
    without_text: int
    quarantined: int
    fingerprint: str


class Area(msgspec.Struct, frozen=True):
    """The area under the curve, with a bootstrap interval."""

    value: float
    low: float
    high: float
    confidence: float
    rounds: int


class Error(msgspec.Struct, frozen=True):
    """The expected calibration error before and after, on documents that calibration has not seen."""

    before: float
    after: float
    bins: int


class Threshold(msgspec.Struct, frozen=True):
    """A score, and of the documents with at least that: their share, their precision, their recall."""

    threshold: float
    kept: float
    precision: float
    recall: float


class Knots(msgspec.Struct, frozen=True):
    """The map from log odds to probabilities: straight between knots, level beyond the outermost."""

    log_odds: list[float]
    probabilities: list[float]


class HeldOutRow(msgspec.Struct, frozen=True):
    """A document the model was not trained on, and the score it had when the model was made."""

    text: str
    label: str
    score: float


class ModelCard(msgspec.Struct, frozen=True):
    """The whole card. Numbers are of the held-out documents that were used neither for training nor for calibration."""

    format: int
    gristmill: str
    kind: Literal["fasttext", "linear"]
    reproducible: bool
    text_field: str
    settings: dict[str, int | float | str | None]
    data: dict[str, Documents]
    in_both_classes: int
    parts: dict[str, dict[str, int]]
    auc: Area
    calibration_error: Error
    score_quantiles: dict[str, float]
    thresholds: dict[str, Threshold | None]
    calibration: Knots
    files: dict[str, str]

    def probabilities(self, log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return calibrated scores, rounded; NaN stays NaN."""
        knots = self.calibration
        return np.round(np.interp(log_odds, knots.log_odds, knots.probabilities), DECIMALS)

    def with_files(self, directory: Path) -> "ModelCard":
        """Return the card with the checksums of all files of a directory."""
        files = {path.name: checksum_of(str(path)) for path in sorted(directory.iterdir())}
        return msgspec.structs.replace(self, files=files)


def write_card(directory: Path, card: ModelCard) -> None:
    """Write the card, last: it says what the other files have to be."""
    content = msgspec.json.format(msgspec.json.encode(card), indent=1)
    write_file(str(directory / CARD_FILE), [content + b"\n"])


def read_card(directory: Path, *, who: str) -> ModelCard:
    """Read the card of a model, or say what is wrong with it."""
    path = directory / CARD_FILE
    made_by = "a directory that `gristmill train-classifier` has written"
    try:
        card = msgspec.json.decode(path.read_bytes(), type=ModelCard)
    except FileNotFoundError:
        there = f"no {CARD_FILE} in it" if directory.is_dir() else "which is not a directory"
        raise ConfigError(f"{who}: expected model to be {made_by}; got {str(directory)!r}, {there}") from None
    except OSError as error:
        raise ConfigError(f"{who}: expected model to be {made_by}; {path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{who}: expected {path} to be a card as train-classifier writes it; got {error}") from None
    if card.format != FORMAT:
        raise ConfigError(f"{who}: expected a card of format {FORMAT} in {path}; got {card.format}: train it again")
    _check_knots(card.calibration, path, who)
    return card


def _check_knots(knots: Knots, path: Path, who: str) -> None:
    x, y = np.array(knots.log_odds), np.array(knots.probabilities)
    rise = len(x) == len(y) > 0 and (np.diff(x) > 0).all() and (np.diff(y) > 0).all()
    if not rise or not (y[0] >= 0 and y[-1] <= 1):
        raise ConfigError(f"{who}: expected the calibration in {path} to rise from 0 to 1; it does not: train it again")


def check_files(directory: Path, card: ModelCard, *, who: str) -> None:
    """Raise ConfigError unless the files are as they were when the card was written."""
    for name, checksum in card.files.items():
        path = directory / name
        try:
            found = checksum_of(str(path))
        except OSError as error:
            raise ConfigError(f"{who}: expected {path}, which the card lists; {error.strerror}") from None
        if found != checksum:
            raise ConfigError(
                f"{who}: expected {path} as it was when the model was made ({checksum}); it has changed ({found})"
            )


def read_rows(directory: Path, *, who: str) -> list[HeldOutRow]:
    """Read the held-out rows."""
    path = directory / ROWS_FILE
    try:
        return [msgspec.json.decode(line, type=HeldOutRow) for line in path.read_bytes().split(b"\n") if line]
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{who}: expected rows with scores in {path}; got {error}") from None


def write_rows(directory: Path, rows: list[HeldOutRow]) -> None:
    """Write the held-out rows."""
    write_file(str(directory / ROWS_FILE), [msgspec.json.encode(row) + b"\n" for row in rows])
