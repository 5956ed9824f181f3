"""Make the demo's corpus: about 3 MB of JSONL, the same bytes every time.

Most documents are made-up prose; some are short passages of well-known works in the public domain; and some are what
the web is full of: menus, price lists, repeated notices, symbols, documents without text. A few lines are not JSON.

    python examples/demo/make_corpus.py DIRECTORY
"""

import gzip
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

SEED = 7
DOCUMENTS_PER_FILE = 700
FILES = ("web-00.jsonl", "web-01.jsonl", "forum/threads.jsonl", "books.jsonl.gz")

PASSAGES = {
    "Pride and Prejudice": (
        "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in "
        "want of a wife. However little known the feelings or views of such a man may be on his first entering a "
        "neighbourhood, this truth is so well fixed in the minds of the surrounding families, that he is "
        "considered as the rightful property of some one or other of their daughters."
    ),
    "Moby-Dick": (
        "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, "
        "and nothing particular to interest me on shore, I thought I would sail about a little and see the watery "
        "part of the world. It is a way I have of driving off the spleen, and regulating the circulation."
    ),
    "A Tale of Two Cities": (
        "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of "
        "foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it "
        "was the season of Darkness, it was the spring of hope, it was the winter of despair."
    ),
    "Gettysburg Address": (
        "Four score and seven years ago our fathers brought forth on this continent, a new nation, conceived in "
        "Liberty, and dedicated to the proposition that all men are created equal. Now we are engaged in a great "
        "civil war, testing whether that nation, or any nation so conceived and so dedicated, can long endure."
    ),
    "Walden": (
        "I went to the woods because I wished to live deliberately, to front only the essential facts of life, "
        "and see if I could not learn what it had to teach, and not, when I came to die, discover that I had not "
        "lived. I did not wish to live what was not life, living is so dear; nor did I wish to practise "
        "resignation."
    ),
}

SUBJECTS = (
    "the miller",
    "the old bridge",
    "a careful reader",
    "the river",
    "her neighbour",
    "the night train",
    "our garden",
    "the committee",
    "a quiet student",
    "the baker",
    "the harbour",
    "the lighthouse keeper",
    "a travelling teacher",
    "the orchard",
    "the clockmaker",
)
VERBS = (
    "watched",
    "repaired",
    "remembered",
    "described",
    "carried",
    "followed",
    "measured",
    "explained",
    "painted",
    "counted",
    "opened",
    "compared",
    "waited for",
    "listened to",
    "wrote about",
)
OBJECTS = (
    "the morning light",
    "a sack of barley",
    "the letters from the coast",
    "every wheel of the mill",
    "the long winter",
    "a map of the valley",
    "the bread on the table",
    "the songs of the harvest",
    "an unfinished story",
    "the price of grain",
    "the stones in the field",
    "a broken window",
    "the school by the road",
)
PLACES = (
    "near the market",
    "beyond the hills",
    "in the early spring",
    "after the flood",
    "with great patience",
    "before anyone else was awake",
    "under a grey sky",
    "to the surprise of all",
    "for the third time that week",
    "as people have always done",
)
LINKS = (
    "Meanwhile",
    "Later",
    "In those days",
    "As a result",
    "Nobody knew why but",
    "That evening",
    "Even so",
    "For a while",
)
MENU = (
    "Home",
    "Products",
    "About us",
    "Contact",
    "Log in",
    "Register",
    "Privacy",
    "Sitemap",
    "Careers",
    "Press",
    "Help",
    "Newsletter",
)


def sentence(rng: random.Random) -> str:
    """One made-up sentence."""
    core = f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)} {rng.choice(PLACES)}"
    if rng.random() < 0.3:
        return f"{rng.choice(LINKS)} {core}."
    return f"{core[0].upper()}{core[1:]}{rng.choice('...?!')}"


def prose(rng: random.Random) -> str:
    """A few paragraphs of made-up prose."""
    paragraphs = [" ".join(sentence(rng) for _ in range(rng.randint(3, 7))) for _ in range(rng.randint(2, 7))]
    return "\n\n".join(paragraphs)


def passage(rng: random.Random) -> str:
    """A passage of a well-known work, introduced and commented on."""
    title = rng.choice(sorted(PASSAGES))
    return f"From {title}:\n\n{PASSAGES[title]}\n\n{sentence(rng)} {sentence(rng)}"


def menu(rng: random.Random) -> str:
    """The navigation of a web site and nothing else: lines that end like no sentence does."""
    return "\n".join(f"{rng.choice(MENU)} {rng.randint(1, 99)} of our {rng.choice(MENU)} page" for _ in range(20))


def price_list(rng: random.Random) -> str:
    """A table of numbers."""
    return "\n".join(
        f"item {rng.randint(10**6, 10**8)} at {rng.randint(100, 99999)}.{rng.randint(10, 99)} of the 2024."
        for _ in range(15)
    )


def symbols(rng: random.Random) -> str:
    """A page whose text got lost between its ornaments."""
    return (
        " ".join("".join(rng.choices("#*=~<>|/@%&", k=rng.randint(2, 6))) + f" {rng.choice(MENU)}" for _ in range(60))
        + "."
    )


def notice(rng: random.Random) -> str:
    """The same notice again and again."""
    line = f"This page uses cookies to remember {rng.choice(OBJECTS)} and to show {rng.choice(OBJECTS)}."
    return "\n".join([line] * rng.randint(6, 12))


def stub(rng: random.Random) -> str:
    """Too short to be worth anything."""
    return sentence(rng)


def gibberish(rng: random.Random) -> str:
    """Keys pressed at random."""
    return " ".join("".join(rng.choices("bcdfghjklmnpqrstvwxz", k=rng.randint(9, 18))) for _ in range(80)) + "."


KINDS: dict[Callable[[random.Random], str], int] = {
    prose: 120, passage: 14, menu: 8, price_list: 6, symbols: 6, notice: 8, stub: 14, gibberish: 5,
}  # fmt: skip
BROKEN = (
    b'{"id": "cut-off", "text": "the writer of this line was interrupted',
    b'["a list", "is no document"]',
    b'{"id": "bad-bytes", "text": "caf\xe9 in Latin-1"}',
)


def make_lines(name: str) -> list[bytes]:
    """Return the lines of one file; they depend on its name only."""
    rng = random.Random(f"{SEED} {name}")
    lines = []
    for number in range(DOCUMENTS_PER_FILE):
        [kind] = rng.choices(list(KINDS), weights=list(KINDS.values()))
        document: dict[str, object] = {"id": f"{Path(name).name.partition('.')[0]}-{number:05}", "text": kind(rng)}
        lines.append(json.dumps(document | {"url": f"https://example.org/{name}/{number}"}).encode())
    extra = [b'{"id": "empty", "text": ""}', b'{"id": "null", "text": null}', b'{"id": "no-text"}', *BROKEN, b""]
    for line in extra:
        lines.insert(rng.randrange(len(lines)), line)
    return lines


def make_corpus(directory: Path) -> None:
    """Write all files."""
    for name in FILES:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = b"\n".join(make_lines(name)) + b"\n"
        # No time stamp in the gzip header: the corpus is the same bytes every time.
        path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/demo/make_corpus.py DIRECTORY")
    make_corpus(Path(sys.argv[1]))
