"""Documents and models that the benchmarks of model stages run on.

The models are a DeBERTa of two layers, exported to ONNX, and MiniLM from packages: real architectures, sizes that leave
room for five rounds. Documents are words of the small model's vocabulary in web-like lengths (log-normal), seeded.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmarks.record import ROOT

DATA = ROOT / "benchmarks" / "data" / "models"
MEDIAN_WORDS, SPREAD, MOST_WORDS = 60, 0.8, 250
_WORDS = "river stone market winter paper engine garden letter morning window music science history village ocean"


def texts(number: int, *, seed: int = 0, median: int = MEDIAN_WORDS) -> Iterator[str]:
    """Yield documents."""
    chance, words = np.random.default_rng(seed), _WORDS.split()
    lengths = np.exp(chance.normal(np.log(median), SPREAD, number)).clip(1, MOST_WORDS).astype(int)
    for length in lengths:
        yield " ".join(chance.choice(words, length))


def write_files(directory: Path, number: int, *, per_file: int = 256, seed: int = 0) -> Path:
    """Write JSONL files of so many documents each; those of the same numbers are kept from run to run."""
    made = directory / "complete"
    if made.exists():
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    documents = list(texts(number, seed=seed))
    for part in range(0, number, per_file):
        lines = [json.dumps({"id": part + n, "text": text}) for n, text in enumerate(documents[part : part + per_file])]
        (directory / f"part-{part // per_file:04d}.jsonl").write_text("\n".join(lines) + "\n")
    made.touch()
    return directory


def small_deberta() -> str:
    """Return the directory of a DeBERTa of 2 layers of width 64 with eleven labels, as ONNX. Made with torch, once."""
    directory = DATA / "mixin-onnx"
    if not (directory / "model.onnx").exists():
        from tests.tiny_torch_models import TinyModels

        DATA.mkdir(parents=True, exist_ok=True)
        models = TinyModels(DATA)
        models.as_onnx(models.mixin, ["logits"], "mixin")
    return str(directory)
