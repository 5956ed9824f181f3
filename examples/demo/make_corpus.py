"""Make the demo's corpus: about 1 MB of JSONL, the same bytes every time.

The pages are real text: 31 annual messages of five presidents of the United States (speeches.jsonl.gz), cut into
passages. What the web adds to such pages is planted: menus, notices, addresses, copies and near-copies, other
languages, a question of a benchmark, documents without text, and lines that are not JSON.

    python examples/demo/make_corpus.py DIRECTORY
"""

import gzip
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

SEED = 7
PASSAGE_WORDS = 280
SPEECHES = Path(__file__).with_name("speeches.jsonl.gz")

# A benchmark that a model will be judged by: the passage it asks about must not be in the training data.
QUESTION = (
    "Who said this to Congress, and when? Fellow-citizens, we can not escape history. We of this Congress and this "
    "Administration will be remembered in spite of ourselves."
)

# The beginnings of works in the public domain, in languages that a corpus of English is not to have.
OTHER_LANGUAGES = {
    "Der Froschkönig": (
        "In den alten Zeiten, wo das Wünschen noch geholfen hat, lebte ein König, dessen Töchter waren alle schön, "
        "aber die jüngste war so schön, dass die Sonne selber, die doch so vieles gesehen hat, sich verwunderte, "
        "so oft sie ihr ins Gesicht schien. Nahe bei dem Schlosse des Königs lag ein großer dunkler Wald, und in dem "
        "Walde unter einer alten Linde war ein Brunnen."
    ),
    "Déclaration des droits de l'homme": (
        "Les hommes naissent et demeurent libres et égaux en droits. Les distinctions sociales ne peuvent être fondées "
        "que sur l'utilité commune. Le but de toute association politique est la conservation des droits naturels et "
        "imprescriptibles de l'homme. Ces droits sont la liberté, la propriété, la sûreté, et la résistance à "
        "l'oppression. Le principe de toute souveraineté réside essentiellement dans la nation."
    ),
    "Don Quijote": (
        "En un lugar de la Mancha, de cuyo nombre no quiero acordarme, no ha mucho tiempo que vivía un hidalgo de los "
        "de lanza en astillero, adarga antigua, rocín flaco y galgo corredor. Una olla de algo más vaca que carnero, "
        "salpicón las más noches, duelos y quebrantos los sábados, lentejas los viernes, algún palomino de añadidura "
        "los domingos, consumían las tres partes de su hacienda."
    ),
}
MENU = ("Home", "Products", "About us", "Contact", "Log in", "Register", "Privacy", "Sitemap", "Press", "Newsletter")
FOOTERS = (
    "Please enable JavaScript to see the comments on this page.",
    "By using this site you agree to our cookie policy.",
)
CONTACTS = (
    "Found a mistake in this transcript? Write to {name}@example.org and we will correct it.",
    "Our reading room can be reached under +1 202 555 01{number} on every day of the week.",
    "This copy was requested from 203.0.113.{number} and is the work of volunteers.",
)
NAMES = ("a.miller", "jane.roe", "archive", "r.okafor", "library-desk")
BROKEN = (
    b'{"id": "cut-off", "text": "the writer of this line was interrupted',
    b'["a list", "is not a document"]',
    b'{"id": "bad-bytes", "text": "caf\xe9 in Latin-1"}',
)
Document = dict[str, object]


def speeches() -> list[dict[str, str]]:
    """The texts that come with the demo."""
    return [json.loads(line) for line in gzip.decompress(SPEECHES.read_bytes()).splitlines()]


def passages(text: str) -> Iterator[str]:
    """Cut a speech into passages of some paragraphs, each of a few whole sentences."""
    paragraphs: list[str] = []
    words = 0
    sentences = re.split(r"(?<=[.?!]) (?=[A-Z])", text)
    for start in range(0, len(sentences), 3):
        paragraphs.append(" ".join(sentences[start : start + 3]))
        words += len(paragraphs[-1].split())
        if words >= PASSAGE_WORDS:
            yield "\n\n".join(paragraphs)
            paragraphs, words = [], 0
    if paragraphs:
        yield "\n\n".join(paragraphs)


def page(rng: random.Random, title: str, passage: str) -> str:
    """A passage as a site shows it: under its title, now and then with a contact and a notice below."""
    lines = [title, passage]
    if rng.random() < 0.3:
        number = rng.randint(10, 99)
        lines.append(rng.choice(CONTACTS).format(name=rng.choice(NAMES), number=number))
    if rng.random() < 0.4:
        lines.append(rng.choice(FOOTERS))
    return "\n\n".join(lines)


def almost(rng: random.Random, text: str) -> str:
    """The same page elsewhere: a few words are typed otherwise, and the site says its name."""
    words = text.split(" ")
    for place in rng.sample(range(len(words)), 3):
        words[place] = words[place].upper() if rng.random() < 0.5 else words[place] + ","
    return " ".join(words) + f"\n\nMirrored from the library of volume {rng.randint(1, 9)}."


def menu(rng: random.Random) -> str:
    """The navigation of a site and nothing else."""
    return "\n".join(f"{rng.choice(MENU)} {rng.randint(1, 99)} of our {rng.choice(MENU)} page" for _ in range(20))


def price_list(rng: random.Random) -> str:
    """A table of numbers."""
    rows = (f"item {rng.randint(10**6, 10**8)} at {rng.randint(100, 99999)}.{rng.randint(10, 99)}" for _ in range(30))
    return "\n".join(rows)


def symbols(rng: random.Random) -> str:
    """A page whose text got lost between its ornaments."""
    return " ".join("".join(rng.choices("#*=~<>|/@%&", k=4)) + f" {rng.choice(MENU)}" for _ in range(60))


def notice(rng: random.Random) -> str:
    """The same notice again and again."""
    line = f"This page remembers what you read in volume {rng.randint(1, 40)} and shows you the next one of the series."
    return "\n".join([line] * rng.randint(6, 12))


def stub(rng: random.Random) -> str:
    """Too short to be worth anything."""
    return f"Volume {rng.randint(1, 40)} of the messages will be here soon."


def foreign(rng: random.Random) -> str:
    """A text in another language."""
    title = rng.choice(sorted(OTHER_LANGUAGES))
    return f"{title}, {rng.randint(1, 99)}\n\n{OTHER_LANGUAGES[title]}"


WEB: dict[Callable[[random.Random], str], int] = {
    menu: 8, price_list: 6, symbols: 6, notice: 8, stub: 12, foreign: 10,
}  # fmt: skip


def make_documents() -> dict[str, list[Document]]:
    """Return the documents of each file; they are the same every time."""
    rng = random.Random(SEED)
    files: dict[str, list[Document]] = {
        name: [] for name in ("crawl-00.jsonl", "crawl-01.jsonl", "mirrors/a.jsonl", "archive.jsonl.gz")
    }
    crawl = ("crawl-00.jsonl", "crawl-01.jsonl", "archive.jsonl.gz")
    for speech in speeches():
        for number, passage in enumerate(passages(speech["text"]), start=1):
            title = f"{speech['speaker']}, annual message of {speech['year']}, part {number}"
            text = page(rng, title, passage)
            files[rng.choice(crawl)].append({"text": text})
            if rng.random() < 0.25:
                files["mirrors/a.jsonl"].append({"text": text if rng.random() < 0.4 else almost(rng, text)})
    for _ in range(120):
        [kind] = rng.choices(list(WEB), weights=list(WEB.values()))
        files[rng.choice(list(files))].append({"text": kind(rng)})
    for name, documents in files.items():
        rng.shuffle(documents)
        site = Path(name).name.partition(".")[0]
        for number, document in enumerate(documents):
            document |= {"id": f"{site}-{number:04}", "url": f"https://{site}.example.org/{number}"}
    return files


def make_lines(documents: list[Document], rng: random.Random) -> list[bytes]:
    """Return the lines of a file, some without text and some broken."""
    lines = [json.dumps(document, ensure_ascii=False).encode() for document in documents]
    for line in (b'{"id": "empty", "text": ""}', b'{"id": "null", "text": null}', b'{"id": "no-text"}', *BROKEN, b""):
        lines.insert(rng.randrange(len(lines)), line)
    return lines


def make_corpus(directory: Path) -> None:
    """Write all files, and the benchmark beside them."""
    for name, documents in make_documents().items():
        path = directory / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = b"\n".join(make_lines(documents, random.Random(f"{SEED} {name}"))) + b"\n"
        # No time stamp in the gzip header: the corpus is the same bytes every time.
        path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
    benchmark = directory / "benchmarks" / "history.jsonl"
    benchmark.parent.mkdir(parents=True, exist_ok=True)
    benchmark.write_text(json.dumps({"question": QUESTION, "answer": "Abraham Lincoln, 1862"}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/demo/make_corpus.py DIRECTORY")
    make_corpus(Path(sys.argv[1]))
