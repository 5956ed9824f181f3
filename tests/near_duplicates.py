"""Corpora with duplicates whose exact similarity is known, by counting n-grams in plain Python."""

import random
from dataclasses import dataclass, field

from tests.jsonl_files import write_documents

VOCABULARY = 4000
NGRAM = 5


def ngrams(words):
    return {tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1)}


def similarity(one, other):
    """The Jaccard similarity of two lists of words, which must be folded already."""
    a, b = ngrams(one), ngrams(other)
    return len(a & b) / len(a | b)


@dataclass
class Corpus:
    """Documents by id, and for each pair that was made alike its exact similarity."""

    documents: dict = field(default_factory=dict)  # id -> words
    pairs: dict = field(default_factory=dict)  # (id, id) -> similarity

    def write(self, directory, *, num_files=4, order=None, **extra):
        rows = [{"id": key, "text": " ".join(words), **extra} for key, words in self.documents.items()]
        random.Random(order).shuffle(rows)
        size = -(-len(rows) // num_files)
        for number in range(num_files):
            write_documents(directory / f"{number:03d}.jsonl", rows[number * size : (number + 1) * size])
        return directory


def make_corpus(*, num_documents=400, num_words=120, max_changes=7, seed=0):
    """Every other document gets a near-duplicate with some words changed: similarities from 0.5 to 1."""
    rng = random.Random(seed)
    corpus = Corpus()
    for number in range(num_documents):
        words = [f"w{rng.randrange(VOCABULARY)}" for _ in range(rng.randint(num_words, 2 * num_words))]
        corpus.documents[f"{number}"] = words
        if number % 2:
            continue
        changed = list(words)
        for place in rng.sample(range(len(words)), rng.randint(1, max_changes)):
            changed[place] = f"x{rng.randrange(10**9)}"
        corpus.documents[f"{number}-near"] = changed
        corpus.pairs[f"{number}", f"{number}-near"] = similarity(words, changed)
    return corpus
