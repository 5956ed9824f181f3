"""Pages made to keep parsers busy end in time, and by name, with every extractor."""

import time

import pytest
from tests.hostile_pages import HOSTILE
from tests.parity.html_pages import ENGLISH

from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download import Dropped
from gristmill.stages.text.download.common_crawl import CommonCrawlHTMLExtractor

PAGE_S = 0.5
SLACK_S = 2.0
LIMITS = IngestLimits(page_s=PAGE_S)

# A limit is an exception raised wherever the parser happens to be. Inside a `__del__` Python reports it and goes on,
# and the limit raises it again a moment later: it is kept, and pytest has a report to warn of.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module", params=["justext", "resiliparse", "trafilatura", "cascade"])
def extractor(request):
    made = CommonCrawlHTMLExtractor(request.param, limits=LIMITS)
    made.extract({"content": f"<p>{ENGLISH[0]}</p>".encode()})  # loads everything
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_ends_in_time_and_by_name(extractor, name):
    started = time.process_time()  # of this process alone: others may keep the machine busy
    found = extractor.extract({"url": name, "content": HOSTILE[name]})
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
