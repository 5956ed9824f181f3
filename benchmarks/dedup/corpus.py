"""Corpora with duplicates put in on purpose, and what the truth about them is.

    python -m benchmarks.dedup.corpus DIRECTORY --documents 20000 --words 400 [--files 8]

Words follow Zipf's law over 30,000, so documents share words as real ones do. One document in ten is a copy, two in ten
are a near-duplicate with some words changed; `truth.json` says which, with the exact similarity of their 5-grams.
"""

import argparse
import json
import random
from itertools import accumulate
from pathlib import Path

VOCABULARY = 30_000
NGRAM = 5
MOST_CHANGED = 0.06  # of the words: similarities from about 0.5 to 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=400)
    parser.add_argument("--files", type=int, default=8)
    options = parser.parse_args()
    make_corpus(options.directory, options.documents, options.words, options.files)


def make_corpus(directory: Path, num_documents: int, num_words: int, num_files: int) -> None:
    """Write the files and the truth about them."""
    rng = random.Random(num_documents)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 10))) for _ in range(VOCABULARY)]
    weights = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    directory.mkdir(parents=True, exist_ok=True)
    files = [(directory / f"{number:03d}.jsonl").open("w") for number in range(num_files)]
    copies, pairs = [], []
    recent: list[tuple[int, list[str]]] = []
    for number in range(num_documents):
        chance = rng.random()
        if recent and chance < 0.1:
            original, text = rng.choice(recent)
            copies.append((number, original))
        elif recent and chance < 0.3:
            original, before = rng.choice(recent)
            text = list(before)
            for place in rng.sample(range(len(text)), rng.randint(1, max(1, int(MOST_CHANGED * len(text))))):
                text[place] = rng.choice(words) + "x"
            pairs.append((number, original, _similarity(before, text)))
        else:
            text = rng.choices(words, cum_weights=weights, k=rng.randint(num_words // 2, num_words * 3 // 2))
            recent = [*recent[-200:], (number, text)]
        files[number % num_files].write(json.dumps({"id": str(number), "text": " ".join(text)}) + "\n")
    for file in files:
        file.close()
    truth = {"documents": num_documents, "copies": copies, "pairs": pairs}
    directory.with_suffix(".truth.json").write_text(json.dumps(truth))


def _similarity(one: list[str], other: list[str]) -> float:
    a, b = ({tuple(text[i : i + NGRAM]) for i in range(len(text) - NGRAM + 1)} for text in (one, other))
    return len(a & b) / len(a | b)


if __name__ == "__main__":
    main()
