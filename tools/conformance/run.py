"""Compare the rule sets and the tokeniser with datatrove and spaCy, text by text: `make conformance`.

    python tools/conformance/run.py --peer benchmarks/out/venvs/datatrove/bin/python [--record] [FILE.jsonl ...]

Compares on texts made here (edges of every rule, and chance compositions of what tokenisers trip over) and on the
"text" of any JSONL files that are named. With --record it also writes what the peer answered for the made texts to
tests/data/rule_sets.jsonl, where a test without the peer finds it.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from passages import PASSAGES

from gristmill.kernels.tokens.english import split_english
from gristmill.kernels.tokens.english_characters import UNITS
from gristmill.kernels.tokens.english_exceptions import exceptions
from gristmill.stages.text.rules import C4Quality, FineWebQuality, GopherQuality, GopherRepetition, RuleSet
from gristmill.stages.text.rules.c4 import count_sentences
from gristmill.stages.text.rules.fineweb import CHAR_DUPLICATES_PAPER

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "rule_sets.jsonl"
SETS: dict[str, RuleSet] = {
    "GopherQuality": GopherQuality(),
    "GopherRepetition": GopherRepetition(),
    "C4Quality": C4Quality(),
    "C4Quality without end marks": C4Quality(filter_no_terminal_punct=False),
    "FineWebQuality": FineWebQuality(),
    "FineWebQuality of the paper": FineWebQuality(char_duplicates_ratio=CHAR_DUPLICATES_PAPER),
}
SEED = 11
LONG = 600  # characters
MARKS = [
    *"():;.,-_'\"<>=/+*^~%$#@&°…—–’{}[]|1aAéжΩ中🙂",
    "US$",
    "..",
    "http://",
    ".com",
    "8.8.8.8",
    "10.0.0.1",
    ":80",
    "/x",
]
GAPS = [" ", " ", " ", "  ", "\n", "\n\n", "\t", ". ", ".\n", "? ", "", "\r\n", "\u2028", "\u00a0"]


def made_texts() -> Iterator[str]:
    """Yield the texts that are recorded: passages, passages spoilt in one way each, and mixtures."""
    chance = random.Random(SEED)
    passages = list(PASSAGES.values())
    prose = "\n".join(passages)
    yield from (
        "",
        "\n",
        " \t\n\n",
        "a",
        "#",
        "...",
        "…" * 3,
        prose,
        prose.replace(" ", "\n"),
        prose.replace(",", ",\n"),
    )
    yield from spoilt("\n".join(passages[1:4]), passages)
    pieces = [*sorted(exceptions()), *UNITS, *MARKS]
    for _ in range(40):
        words = chance.choices([*chance.choices(pieces, k=20), *passages[1].split()], k=chance.randrange(5, 80))
        yield "".join(word + chance.choice(GAPS) for word in words)


def spoilt(prose: str, passages: list[str]) -> Iterator[str]:
    """Yield the prose with faults that the rules look for."""
    for fault in (
        "#",
        "...",
        "…",
        "{",
        " lorem ipsum",
        " JavaScript",
        " [12]",
        " cookie policy.",
        " 3.5km",
        "\x00",
        "é",
    ):
        yield prose.replace(". ", f"{fault}. ")
    for fault in ("...", "…", " [edit]", "!", " 'quoted'"):
        yield "\n".join(sentence + fault for sentence in prose.split(", "))
    for bullet in ("- ", "• ", "* "):
        yield "\n".join(bullet + sentence for sentence in prose.split(", "))
    yield " ".join(prose.split()[::3]).replace(" the ", " ").replace(" of ", " ").replace(" that ", " ")
    yield " ".join(word[:2] for word in prose.split())
    yield " ".join(f"{a}{b}{a}" for a, b in zip(prose.split()[::2], prose.split()[1::2], strict=False))
    yield from (prose + "\n\n" + "\n\n".join([line] * 4) for line in (passages[0], "Read on here."))
    yield from ("\n\n".join([prose, *passages, passages[0]]), "\n\n".join([*passages, *passages[:3]]))
    yield from (prose + "\n" + "\n".join(["Next page, please."] * count) for count in (1, 3, 10))
    words = prose.split()
    for size in range(2, 12):  # every third run of so many words comes twice, apart from each other
        runs = [words[at : at + size] for at in range(0, len(words), size)]
        yield " ".join(word for run in (*runs, *runs[::3]) for word in run)


def chance_texts(count: int) -> Iterator[str]:
    """Yield short texts of what tokenisers trip over, and of any characters."""
    chance = random.Random(SEED + 1)
    pieces = [*sorted(exceptions()), *UNITS, *MARKS, *GAPS]
    for _ in range(count):
        yield "".join(chance.choices(pieces, k=chance.randrange(1, 8)))
        yield "".join(chr(chance.choice((*range(0x20, 0x3000), *range(0xE000, 0x11000)))) for _ in range(6))


def every_character() -> Iterator[str]:
    """Yield texts in which each code point stands before, in, behind and between words and numbers."""
    points = [*range(0xD800), *range(0xE000, 0x32400), *range(0xE0000, 0xE0200)]
    for start in range(0, len(points), 64):
        yield " ".join(f"{c}a b{c} A{c}B 1{c}2 3{c} x.{c}Y" for c in map(chr, points[start : start + 64]))


def ask_peer(python: str, texts: list[str], *, verdicts: bool) -> list[dict[str, object]]:
    """Return what the peer answers for every text."""
    asked = "".join(json.dumps({"text": text, "verdicts": verdicts}) + "\n" for text in texts)
    script = Path(__file__).with_name("peer.py")
    done = subprocess.run(
        [python, str(script)], input=asked, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True
    )
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def differences(text: str, answer: dict[str, object]) -> Iterator[str]:
    """Yield what the peer sees otherwise."""
    if [token for token in split_english(text) if not token.isspace()] != answer["words"]:
        yield "words"
    if count_sentences(text) != answer["sentences"]:
        yield "sentences"
    verdicts = cast("dict[str, list[str | None]]", answer["verdicts"])
    for name, verdict in verdicts.items():
        reason, left = [*verdict, text][:2]
        if SETS[name].judge_document(text).reason != reason:
            yield name
        elif reason is None and SETS[name].rewrite_document(text) != left:
            yield f"texts of {name}"


def main() -> int:
    """Compare, say where there is a difference, and return 1 if there is one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", required=True, help="the Python of an environment with datatrove and spaCy")
    parser.add_argument("--record", action="store_true", help="write tests/data/rule_sets.jsonl")
    parser.add_argument("--few", action="store_true", help="compare on the recorded texts and on FILES only")
    parser.add_argument("files", nargs="*", type=Path, help="JSONL files with a field 'text'")
    options = parser.parse_args()
    made = list(made_texts())
    read = [json.loads(line)["text"] for path in options.files for line in path.read_bytes().splitlines()]
    words_only = [] if options.few else [*chance_texts(1000), *every_character()]
    texts = [*made, *read, *words_only]
    answers = ask_peer(options.peer, [*made, *read], verdicts=True)
    answers += ask_peer(options.peer, words_only, verdicts=False)
    if options.record:
        rows = [{"text": text, **answer} for text, answer in zip(made, answers, strict=False)]
        for row in rows:
            if len(str(row["text"])) > LONG:
                del row["words"]  # the file stays small; words are compared below, and on short texts by the test
        RECORDED.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    found = [(what, text) for text, answer in zip(texts, answers, strict=True) for what in differences(text, answer)]
    for what, text in found[:20]:
        print(f"{what} differ for {text[:300]!r}")
    print(f"{len(texts)} texts, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
