"""Limits are checked when they are made."""

import pytest

from gristmill.errors import ConfigError
from gristmill.stages.ingest_limits import IngestLimits


def test_a_limit_that_is_given_replaces_the_usual_one():
    assert IngestLimits(page_s=2).page_s == 2
    assert IngestLimits(page_s=2).max_html_depth == 20_000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"page_s": 0}, r"^IngestLimits: expected page_s to be a number > 0; got 0$"),
        ({"page_s": "10"}, r"expected page_s to be a number > 0; got '10'$"),
        ({"max_html_bytes": 1.5}, r"expected max_html_bytes to be a whole number > 0; got 1\.5$"),
        ({"max_pdf_pages": True}, r"expected max_pdf_pages to be a whole number > 0; got True$"),
    ],
)
def test_a_limit_that_cannot_be_one_is_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        IngestLimits(**given)
