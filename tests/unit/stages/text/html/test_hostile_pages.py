"""Pages made to keep parsers busy end in time, and by name, with every extractor."""

import time

import pytest
from tests.hostile_pages import HOSTILE
from tests.parity.html_pages import ENGLISH

from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.math.download.extract import MathContentExtractor
from gristmill.stages.text.download import Dropped
from gristmill.stages.text.download.common_crawl import CommonCrawlHTMLExtractor

PAGE_S = 0.5
SLACK_S = 2.0
LIMITS = IngestLimits(page_s=PAGE_S)

# A limit is an exception raised wherever the parser happens to be. Inside a `__del__` Python reports it and goes on,
# and the limit raises it again a moment later: it is kept, and pytest has a report to warn of.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


EXTRACTORS = ["justext", "resiliparse", "trafilatura", "cascade", "math as text", "math as markdown"]


@pytest.fixture(scope="module", params=EXTRACTORS)
def extract(request):
    """What makes a document of the bytes of a page."""
    name, _, form = request.param.partition(" as ")
    column = "binary_content" if form else "content"
    if form:
        extractor = MathContentExtractor(lynx_timeout_sec=PAGE_S, output_format=form)
    else:
        extractor = CommonCrawlHTMLExtractor(name, limits=LIMITS)

    def made_of(page):
        return extractor.extract({"url": "https://example.org/", "mime_type": "text/html", column: page})

    made_of(f"<p>{ENGLISH[0]}</p>".encode())  # loads everything
    return made_of


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_ends_in_time_and_by_name(extract, name):
    started = time.process_time()  # of this process alone: others may keep the machine busy
    found = extract(HOSTILE[name])
    elapsed = time.process_time() - started

    assert elapsed < PAGE_S + SLACK_S
    if isinstance(found, dict):
        assert ENGLISH[0] in found["text"]
    else:
        assert isinstance(found, Quarantined | Dropped)
        reason = found.reason if isinstance(found, Dropped) else found.kind
        assert reason in {"too_complex", "time_limit", "empty"}


def test_most_of_them_are_known_before_they_are_parsed():
    """Whether a timer runs out depends on the machine; what is known from the bytes alone does not."""
    extractor = CommonCrawlHTMLExtractor("resiliparse")
    kinds = {name: getattr(extractor.extract({"content": page}), "kind", "kept") for name, page in HOSTILE.items()}

    assert [name for name, kind in kinds.items() if kind == "too_complex"] == [
        "nested 100,000 deep",
        "formatting that is never closed",
        "100,000 attributes",
        "paragraphs that are never closed",
        "tags that are crossed",
    ]
