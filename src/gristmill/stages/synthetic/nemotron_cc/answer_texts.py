"""What becomes of an answer before it is a text to train on: prefixes, quotes, lists, questions with their answers.

Pure functions of texts. Where something is to be chosen, a hash of the text chooses, not chance, so that the same
answers give the same bytes on every run, on every machine and in any order.
"""

import hashlib
import re

from gristmill.stages.synthetic.token_counts import CountTokens

QA_PREFIX = "Here are the questions and answers based on the provided text:"
TOKENS_PER_PAIRS = 150  # of a text, for which `max_num_pairs` pairs are allowed
_QUESTION = "Question:"
_PASSAGE = re.compile(r"Passage(?:\s+[1-3])?:")
_BULLET = re.compile(r"\s*[-*•]\s+")
_QUOTES = {'"': '"', "“": "”", "«": "»", "'": "'", "‘": "’"}


def without_emphasis(text: str) -> str:
    """Remove the asterisks of bold and italic text."""
    return re.sub(r"\*{1,3}(?=\S)([^*\n]+?)(?<=\S)\*{1,3}", r"\1", text)


def after_prefix(answer: str, prefix: str) -> str | None:
    """Return what follows the prefix an answer has to begin with, without quotes around it; None if it does not.

    >>> after_prefix('**Paraphrased Text:** "So it was."', "Paraphrased Text:")
    'So it was.'
    """
    plain = without_emphasis(answer).strip()
    if not plain.startswith(prefix):
        return None
    return without_quotes(plain[len(prefix) :].strip())


def without_quotes(text: str) -> str:
    """Remove one pair of quotes around the whole of a text, not those of a sentence that happens to end it."""
    closing = _QUOTES.get(text[:1])
    if closing is None or len(text) < 2 or text[-1] != closing:
        return text
    inside = text[1:-1]
    return text if text[0] in inside or closing in inside else inside.strip()


def without_passage_labels(answer: str) -> str:
    """Remove lines that are nothing but `Passage:` or `Passage 1:`, and the label where a text follows it."""
    lines = []
    for line in answer.split("\n"):
        label = _PASSAGE.match(without_emphasis(line).strip())
        rest = without_emphasis(line).strip()[label.end() :].strip() if label else line
        if label is None or rest:
            lines.append(rest)
    return "\n".join(lines).strip()


def list_items(answer: str) -> str:
    """Return the lines of a bullet list without bullets; a first line that is not an item introduces the list."""
    lines = without_emphasis(answer).strip().split("\n")
    if lines and not _BULLET.match(lines[0]):
        lines = lines[1:]
    return "\n".join(kept for line in lines if (kept := _BULLET.sub("", line, count=1).strip()))


def question_answer_pairs(answer: str, prefix: str = QA_PREFIX) -> list[str]:
    """Return the pairs of an answer, each of them a text that begins with `Question:`; none if there is no such text.

    What stands before the first question has to be the prefix: anything else is an answer of another kind.
    """
    lines = [_BULLET.sub("", line, count=1).strip() for line in without_emphasis(answer).split("\n")]
    lines = [line for line in lines if line]
    if lines and lines[0] == prefix.strip():
        lines = lines[1:]
    pairs: list[str] = []
    for line in lines:
        if line.startswith(_QUESTION):
            pairs.append(line)
        elif pairs:
            pairs[-1] += "\n" + line
        else:
            return []
    return [pair for pair in pairs if "\n" in pair]  # a question without an answer teaches nothing


def choose_pairs(pairs: list[str], text: str, max_num_pairs: int, count: CountTokens, *, seed: int = 0) -> list[str]:
    """Return some of the pairs in an order of their own: one to as many as the length of the text allows.

    A short text gets few: ten questions about two sentences repeat each other.
    """
    most = max(1, max_num_pairs * count(text) // TOKENS_PER_PAIRS)
    wanted = 1 + _hash(seed, text) % most
    order = sorted(range(len(pairs)), key=lambda number: (_hash(seed, text, pairs[number]), number))
    return [pairs[number] for number in order[:wanted]]


def _hash(seed: int, *texts: str) -> int:
    digest = hashlib.blake2b(str(seed).encode(), digest_size=8)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return int.from_bytes(digest.digest(), "little")
