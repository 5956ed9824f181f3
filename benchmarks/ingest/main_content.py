"""How good and how fast extractors are on pages whose text is known (`gold.py`).

    python -m benchmarks.ingest.main_content [--record]

Word-F1 is the mean over pages; speed is megabytes of HTML a second of processor time, decoded and with known language.
The share of short lines above which the cascade asks trafilatura is chosen on one half of the pages (every second, by
size), as the one with the best F1 among those at which it is 2.5 times as fast as trafilatura, and what it gives is
measured on the other half.
"""

import time
from statistics import mean

from benchmarks.ingest.gold import Page, pages, word_f1
from benchmarks.record import header, record

from gristmill.stages.text.download.html_extractors import (
    CascadeExtractor,
    HTMLExtractorAlgorithm,
    JusTextExtractor,
    ResiliparseExtractor,
    TrafilaturaExtractor,
)
from gristmill.stages.text.download.html_extractors.cascade import short_line_share
from gristmill.stages.text.html.charset import PageDecoder
from gristmill.stages.text.html.languages import known_stop_lists, language_of

LEAST_SPEED = 2.5
SHARES = [round(0.05 + 0.01 * k, 2) for k in range(36)]
GROUPS = ("articles", "readability")
ROUNDS = 2

Measured = dict[str, list[float]]  # f1, seconds, and for the first of a cascade the share of short lines


def extractors() -> dict[str, HTMLExtractorAlgorithm]:
    precise = {"favor_precision": True, "include_comments": False}
    return {
        "resiliparse": ResiliparseExtractor(0),
        "resiliparse, alt texts": ResiliparseExtractor(0, alt_texts=True),
        "trafilatura": TrafilaturaExtractor(0),
        "trafilatura, precise": TrafilaturaExtractor(0, **precise),
        "trafilatura, fast": TrafilaturaExtractor(0, fast=True),
        "cascade": CascadeExtractor(),
        "justext (default of the reference)": JusTextExtractor(),
        "resiliparse, stop words at 0.32 (reference)": ResiliparseExtractor(),
        "trafilatura, stop words at 0.32 (reference)": TrafilaturaExtractor(),
    }


def measured(extractor: HTMLExtractorAlgorithm, gold: list[Page], htmls: list[str]) -> Measured:
    """F1, seconds and the share of short lines of each page; of several rounds the quickest counts."""
    lists = known_stop_lists()
    found: Measured = {"f1": [], "seconds": [], "short": []}
    for page, html in zip(gold, htmls, strict=True):
        language = language_of(html_text(html))
        stop_words = lists.get(language, frozenset())
        seconds, paragraphs = [], None
        for _ in range(ROUNDS):
            started = time.process_time()
            paragraphs = extractor.extract_text(html, stop_words, language)
            seconds.append(time.process_time() - started)
        found["f1"].append(word_f1("\n".join(paragraphs or []), page.text))
        found["seconds"].append(min(seconds))
        found["short"].append(short_line_share(paragraphs) if paragraphs else 1.0)
    return found


def html_text(html: str) -> list[str]:
    return ResiliparseExtractor(0, main_content=False).extract_text(html, frozenset(), "ENGLISH") or []


def summary(found: Measured, gold: list[Page]) -> dict[str, float]:
    groups = {
        group: mean(f1 for f1, page in zip(found["f1"], gold, strict=True) if page.group == group) for group in GROUPS
    }
    megabytes = sum(len(page.data) for page in gold) / 1e6
    return {**{f"f1_{name}": round(value, 3) for name, value in groups.items()}} | {
        "f1": round(mean(found["f1"]), 3),
        "mb_per_cpu_s": round(megabytes / sum(found["seconds"]), 1),
    }


def cascaded(shares: dict[int, float], first: Measured, then: Measured, gold: list[Page]) -> dict[str, float]:
    """What the cascade gives for some pages, each with a share, and its speed beside that of the second alone."""
    asks = {row: first["short"][row] > share for row, share in shares.items()}
    f1 = {row: (then["f1"][row] or first["f1"][row]) if asked else first["f1"][row] for row, asked in asks.items()}
    seconds = sum(first["seconds"][row] + asked * then["seconds"][row] for row, asked in asks.items())
    groups = {group: mean(f1[row] for row in shares if gold[row].group == group) for group in GROUPS}
    speed = sum(then["seconds"][row] for row in shares) / seconds
    return {"f1": round(mean(f1.values()), 3), "speed": round(speed, 2)} | {k: round(v, 3) for k, v in groups.items()}


def halves(first: Measured, then: Measured, gold: list[Page]) -> dict[str, dict[str, float]]:
    """The share chosen on every second page, and what it gives on the others; and the other way round."""
    told: dict[str, dict[str, float]] = {}
    both: dict[int, float] = {}
    by_size = sorted(range(len(gold)), key=lambda row: (gold[row].group, len(gold[row].data)))
    for begin in (0, 1):
        tried = {share: cascaded(dict.fromkeys(by_size[begin::2], share), first, then, gold) for share in SHARES}
        quick = {share: result for share, result in tried.items() if result["speed"] >= LEAST_SPEED} or tried
        share = max(quick, key=lambda each: quick[each]["f1"])
        others = dict.fromkeys(by_size[1 - begin :: 2], share)
        both |= others
        told[f"half {2 - begin}"] = {"share": share, **cascaded(others, first, then, gold)}
    told["all pages, each with the share of the other half"] = cascaded(both, first, then, gold)
    return told


def main() -> None:
    began = header()
    gold = pages()
    decoder = PageDecoder()
    htmls = [decoded.text if (decoded := decoder.decode(page.data)) else "" for page in gold]
    found = {name: measured(extractor, gold, htmls) for name, extractor in extractors().items()}
    result: dict[str, object] = {"pages": {group: sum(page.group == group for page in gold) for group in GROUPS}}
    result |= {name: summary(measures, gold) for name, measures in found.items()}
    precise = measured(CascadeExtractor().then, gold, htmls)
    sweep = {
        str(share): cascaded(dict.fromkeys(range(len(gold)), share), found["resiliparse"], precise, gold)
        for share in (0.05, 0.10, 0.15, 0.20, 0.30)
    }
    result["cascade by share"] = sweep
    result["chosen on one half, measured on the other"] = halves(found["resiliparse"], precise, gold)
    record("ingest_main_content", began, result)


if __name__ == "__main__":
    main()
