"""What a trained model is worth, measured on documents it has not seen: the numbers of its card, and 50 rows."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gristmill import __version__
from gristmill.errors import ConfigError
from gristmill.kernels import calibration
from gristmill.stages.text.quality.model_card import (
    DECIMALS,
    FORMAT,
    Area,
    Documents,
    Error,
    HeldOutRow,
    Knots,
    ModelCard,
    Threshold,
)
from gristmill.stages.text.quality.trained_model import TextModel, TrainedClassifier
from gristmill.workflows.training.examples import CALIBRATION, REPORT, TRAIN, Examples

ROWS = 50
ROW_BYTES = 20_000  # a longer document is kept only if there are not enough others
ROUNDS, CONFIDENCE, BINS = 1000, 0.95, 10
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
PRECISION, SHARE = 0.9, 0.1


@dataclass(frozen=True)
class Origin:
    """How a model was made, as far as its card says."""

    kind: Literal["fasttext", "linear"]
    text_field: str
    reproducible: bool
    settings: dict[str, int | float | str | None]
    paths: dict[str, str]
    without_text: dict[str, int]
    quarantined: dict[str, int]


def judge(examples: Examples, model: TextModel, origin: Origin, *, seed: int) -> tuple[ModelCard, list[HeldOutRow]]:
    """Calibrate on one half of the held-out documents and measure on the other; return the card and some rows."""
    log_odds = _log_odds(examples, model)
    fitted = (examples.part == CALIBRATION) & np.isfinite(log_odds)
    shown = (examples.part == REPORT) & np.isfinite(log_odds)
    for part, chosen in (("calibrate", fitted), ("report", shown)):
        if len(np.unique(examples.positive[chosen])) < 2:
            raise ConfigError(
                f"train-classifier: expected documents of both classes with a score to {part} on; got {chosen.sum():,} "
                "documents with one, all of one class. Give more documents"
            )
    x, y = calibration.calibrate(log_odds[fitted], examples.positive[fitted])
    odds, positive = log_odds[shown], examples.positive[shown]
    scores = np.round(np.interp(odds, x, y), DECIMALS)
    raw = 1 / (1 + np.exp(-np.clip(odds, -700, 700)))
    area = calibration.auc_interval(scores, positive, seed=seed % 2**64, rounds=ROUNDS, confidence=CONFIDENCE)
    precise = calibration.cut_at_precision(scores, positive, PRECISION)
    card = ModelCard(
        format=FORMAT,
        gristmill=__version__,
        kind=origin.kind,
        reproducible=origin.reproducible,
        text_field=origin.text_field,
        settings=origin.settings,
        data={name: _documents(examples, origin, name) for name in ("positive", "negative")},
        in_both_classes=examples.in_both_classes(),
        parts=examples.counts(),
        auc=Area(_rounded(area.value), _rounded(area.low), _rounded(area.high), CONFIDENCE, ROUNDS),
        calibration_error=Error(
            _rounded(calibration.expected_error(raw, positive, bins=BINS)),
            _rounded(calibration.expected_error(scores, positive, bins=BINS)),
            BINS,
        ),
        score_quantiles={str(q): _rounded(np.quantile(scores, q)) for q in QUANTILES},
        thresholds={
            f"precision {PRECISION}": None if precise is None else Threshold(*map(_rounded, precise)),
            f"keep {SHARE}": Threshold(*map(_rounded, calibration.cut_at_share(scores, positive, SHARE))),
        },
        calibration=Knots(x.tolist(), y.tolist()),
        files={},
    )
    return card, _rows(examples, TrainedClassifier(model, card), np.flatnonzero(shown))


def _log_odds(examples: Examples, model: TextModel) -> NDArray[np.float64]:
    """What the model says of each held-out document; NaN for the others."""
    log_odds = np.full(len(examples), np.nan)
    for rows, texts in examples.texts(examples.part != TRAIN):
        log_odds[rows] = model.margins(texts)
    return log_odds


def _documents(examples: Examples, origin: Origin, name: str) -> Documents:
    flag = name == "positive"
    count = int((examples.positive == flag).sum())
    return Documents(
        path=origin.paths[name],
        documents=count,
        without_text=origin.without_text[name],
        quarantined=origin.quarantined[name],
        fingerprint=examples.fingerprint(positive=flag),
    )


def _rows(examples: Examples, classifier: TrainedClassifier, shown: NDArray[np.int64]) -> list[HeldOutRow]:
    """Some held-out documents of both classes with their scores; chosen by hash, so always the same ones."""
    order = np.lexsort((examples.positive[shown], examples.order[shown]))
    chosen: list[int] = []
    for flag in (True, False):
        own = [row for row in shown[order].tolist() if examples.positive[row] == flag]
        distinct = {int(examples.order[row]): row for row in reversed(own)}
        chosen += sorted(distinct.values(), key=own.index)[: 2 * ROWS]
    wanted = np.zeros(len(examples), np.bool_)
    wanted[chosen] = True
    texts: dict[int, str] = {}
    for rows, column in examples.texts(wanted):
        for place, row in enumerate(rows.tolist()):
            texts[row] = column.data[column.starts[place] : column.stops[place]].tobytes().decode()
    kept: list[int] = []
    for flag in (True, False):
        own = [row for row in chosen if examples.positive[row] == flag]
        own.sort(key=lambda row: len(texts[row].encode()) > ROW_BYTES)
        kept += own[: ROWS // 2]
    kept += [row for row in chosen if row not in kept][: ROWS - len(kept)]
    scores = classifier.scores_of([texts[row] for row in kept]).tolist()
    return [
        HeldOutRow(texts[row], "positive" if examples.positive[row] else "negative", score)
        for row, score in zip(kept, scores, strict=True)
    ]


def _rounded(value: float) -> float:
    return round(float(value), DECIMALS)
