"""Two kinds of documents that can be told apart, not perfectly: for tests of training and applying classifiers."""

import json
import random
from pathlib import Path

CLEAR = ["theorem", "evidence", "method", "result", "therefore", "measured", "chapter", "history", "river", "engine"]
NOISY = ["buy", "now", "cheap", "click", "here", "best", "deal", "!!!", "offer", "free", "wow", "subscribe"]
COMMON = [f"{a}{b}{c}" for a in "bdfgklmn" for b in "aeiou" for c in "rstvz"]
WRONG_SHARE = 0.1  # documents that are in the wrong class


def documents(count, *, seed=0, words=30):
    """Return (text, positive) pairs."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        positive = number % 2 == 0
        own = CLEAR if positive == (rng.random() >= WRONG_SHARE) else NOISY
        chosen = [rng.choice(own) if rng.random() < 0.15 else rng.choice(COMMON) for _ in range(words)]
        made.append((" ".join(chosen), positive))
    return made


def write_classes(directory: Path, rows, **columns):
    """Write rows to `positive/a.jsonl` and `negative/a.jsonl`; `columns` are functions of a row's number."""
    paths = []
    for name, flag in (("positive", True), ("negative", False)):
        target = directory / name
        target.mkdir(parents=True, exist_ok=True)
        lines = [
            json.dumps({"id": f"{name}{n}", "text": text, **{key: value(n) for key, value in columns.items()}})
            for n, (text, positive) in enumerate(rows)
            if positive == flag
        ]
        (target / "a.jsonl").write_text("".join(f"{line}\n" for line in lines))
        paths.append(str(target))
    return paths
