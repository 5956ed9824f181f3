"""From a WARC file to text: one page never harms another, whatever it is, and nothing leaves without a word."""

import json
import random
from pathlib import Path

import pytest
from tests.hostile_pages import HOSTILE
from tests.parity.html_pages import ENGLISH, GERMAN, PAGES
from tests.warc_files import packed, record, response

from gristmill.backends.local import LocalExecutor
from gristmill.config.shipped import find_recipe
from gristmill.errors import MissingDependency
from gristmill.pipeline import Pipeline
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download import WarcReader
from gristmill.stages.text.download.common_crawl import CommonCrawlHTMLExtractor
from gristmill.stages.text.download.html_extractors import HTMLExtractorAlgorithm
from gristmill.stages.text.io.writer import JsonlWriter

QUICK = IngestLimits(page_s=0.5)
HERE = LocalExecutor(num_workers=0)


def archive(directory, pages):
    """A WARC file of these pages, by URL; a page is its body, or a whole record."""
    directory.mkdir(exist_ok=True)
    members = [packed(record("warcinfo", b"software: tests\r\n"), 1)]
    for url, page in pages.items():
        members.append(packed(response(url, page) if not page.startswith(b"WARC/") else page, 1))
    (directory / "pages.warc.gz").write_bytes(b"".join(members))
    return str(directory)


def run(source, out, extractor, executor=HERE, blocksize=None):
    stages = [WarcReader(source, extractor=extractor, blocksize=blocksize), JsonlWriter(str(out))]
    return Pipeline("pages", stages=stages).run(executor, quiet=True)


def documents(out):
    lines = [line for path in sorted(Path(out).glob("[!.]*")) for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def good_pages(count):
    head = "<!doctype html><html><head><title>A page</title></head>"
    told = [f"This is page number {k} of those that were good. {ENGLISH[k % 8]}" for k in range(count)]
    bodies = [f"{head}<body><p>{told[k]} {ENGLISH[(k + 1) % 8]}</p></body></html>" for k in range(count)]
    return {f"https://good.example/{k}": body.encode() for k, body in enumerate(bodies)}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["justext", "resiliparse", "trafilatura", "cascade"])
def test_hostile_pages_leave_by_name_and_those_beside_them_are_kept(tmp_path, algorithm):
    good = good_pages(24)
    hostile = {f"https://bad.example/{k}": page for k, page in enumerate(HOSTILE.values())}
    pages = dict(sorted({**good, **hostile}.items(), key=lambda entry: entry[0].rpartition("/")[2]))
    options = {"length_low": 10, "length_high": 50} if algorithm == "justext" else None
    extractor = CommonCrawlHTMLExtractor(algorithm, options, limits=QUICK)

    result = run(archive(tmp_path / "in", pages), tmp_path / "out", extractor, LocalExecutor(num_workers=2))
    kept = [document["url"] for document in documents(tmp_path / "out")]
    assert [url for url in kept if url in good] == [url for url in pages if url in good]
    assert result.read == 36
    assert result.written + result.dropped_total + result.quarantined == 36
    kinds = {json.loads(line)["kind"] for line in quarantine(result)}
    assert kinds <= {"too_complex", "time_limit"}


def quarantine(result):
    found = Path(result.run_dir).rglob("quarantine/*.jsonl")
    return [line for path in sorted(found) for line in path.read_text().splitlines()]


class HangsInC(HTMLExtractorAlgorithm):
    """Hangs in a call of C on one page, where no signal is heeded."""

    def extract_text(self, html, stop_words, language):
        if "number 5" in html:
            sum(range(10**13))  # hours
        return [html]


class ShortDeadline(CommonCrawlHTMLExtractor):
    batch_deadline_s = 4.0


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.parametrize("blocksize", [None, 1000], ids=["apart", "where parts are read"])
def test_a_hang_in_c_is_ended_by_the_deadline_and_costs_one_page(tmp_path, blocksize):
    good = {url: page for url, page in good_pages(40).items() if "5" not in url or url.endswith("/5")}
    source, executor = archive(tmp_path / "in", good), LocalExecutor(num_workers=1)
    extractor = ShortDeadline(HangsInC(), limits=QUICK)

    result = run(source, tmp_path / "out", extractor, executor, blocksize)
    assert (result.read, result.written, result.quarantined) == (len(good), len(good) - 1, 1)
    assert len({document["url"] for document in documents(tmp_path / "out")}) == len(good) - 1
    [lost] = [json.loads(line) for line in quarantine(result)]
    assert lost["kind"] == "WorkerLost"
    assert "no result within the deadline of 4 s" in lost["error"]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["justext", "resiliparse", "trafilatura", "cascade"])
def test_a_text_does_not_depend_on_the_order_of_pages(tmp_path, algorithm):
    pages = {f"https://some.example/{name}": page.encode() for name, (_, page) in PAGES.items()}
    pages |= {f"{url}/again": page for url, page in pages.items()}
    texts = []
    for seed in (0, 1):
        order = random.Random(seed).sample(sorted(pages), len(pages))
        source = archive(tmp_path / f"in-{seed}", {url: pages[url] for url in order})
        run(source, tmp_path / f"out-{seed}", CommonCrawlHTMLExtractor(algorithm))
        texts.append({document["url"]: document["text"] for document in documents(tmp_path / f"out-{seed}")})

    assert len(texts[0]) >= 10
    assert texts[0] == texts[1]


def test_every_reason_is_in_the_books(tmp_path):
    pages = {
        "https://a.example/ok": PAGES["article"][1].encode(),
        "https://a.example/pdf": response("https://a.example/pdf", b"%PDF-1.7", content_type="application/pdf"),
        "https://a.example/gone": response("https://a.example/gone", b"<p>Not here</p>", status="404 Not Found"),
        "https://a.example/empty": b"<html></html>",
        "https://a.example/large": b"<p>" + b"word " * 1_200_000,
        "https://a.example/deep": b"<div>" * 30_000,
    }
    extractor = CommonCrawlHTMLExtractor("resiliparse", {"required_stopword_density": 0}, extra=["warc_offset"])
    result = run(archive(tmp_path / "in", pages), tmp_path / "out", extractor)

    [document] = documents(tmp_path / "out")
    assert list(document) == ["url", "warc_id", "source_id", "language", "text", "warc_offset"]
    assert document["source_id"] == "pages.warc.gz"
    assert (result.read, result.written, result.quarantined) == (6, 1, 1)
    [reasons] = result.dropped.values()
    assert reasons == {"not_html": 1, "http_status": 1, "empty": 1, "too_large": 1}


MISSING = [
    ("resiliparse", "resiliparse"),
    ("trafilatura", "cascade"),
    ("justext", "justext"),
    ("cchardet", "resiliparse"),
]


@pytest.mark.parametrize(("missing", "algorithm"), MISSING)
def test_a_missing_package_is_named_with_its_extra_before_the_run(tmp_path, monkeypatch, missing, algorithm):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == missing else found(name, *rest)
    )
    source = archive(tmp_path / "in", good_pages(1))
    with pytest.raises(MissingDependency, match=rf"^{missing}: .* pip install 'gristmill\[html\]'$"):
        run(source, tmp_path / "out", CommonCrawlHTMLExtractor(algorithm))
    assert not (tmp_path / "out").exists()


def test_what_happened_to_formulas_and_code_is_counted(tmp_path):
    page = f"<p>{ENGLISH[0]} <code>a</code> {ENGLISH[1]} <script type='math/tex'>b</script></p>"
    extractor = CommonCrawlHTMLExtractor("resiliparse", {"required_stopword_density": 0})
    result = run(archive(tmp_path / "in", {"https://a.example/": page.encode()}), tmp_path / "out", extractor)

    assert documents(tmp_path / "out")[0]["text"].endswith("$b$")
    assert result.counts["extract_commoncrawlhtmlextractor"].counted == {"formulas": 1, "code_pieces": 1}


@pytest.mark.slow
def test_the_recipe_takes_pages_to_filtered_documents(tmp_path):
    long = "".join(f"<p>{line}</p>" for line in ENGLISH)
    german = "".join(f"<p>{line}</p>" for line in GERMAN)
    pages = {
        "https://a.example/good": f"<html><body><article>{long}</article></body></html>".encode(),
        "https://a.example/short": f"<html><body><p>{ENGLISH[0]}</p></body></html>".encode(),
        "https://a.example/german": f"<html><body><article>{german}</article></body></html>".encode(),
        "https://a.example/picture": response("https://a.example/picture", b"\x89PNG", content_type="image/png"),
        "https://a.example/deep": b"<div>" * 30_000,
    }
    values = {"input": archive(tmp_path / "in", pages), "output": str(tmp_path / "out")}
    result = find_recipe("commoncrawl").build(values).run(HERE, quiet=True)

    [document] = documents(tmp_path / "out")
    assert document["url"] == "https://a.example/good"
    assert {"warc_date", "warc_offset"} < set(document)
    assert (result.read, result.written, result.dropped_total, result.quarantined) == (5, 1, 3, 1)
    assert result.dropped["extract_commoncrawlhtmlextractor"] == {"not_html": 1}
    assert list(result.dropped["language"].values()) == [1]
