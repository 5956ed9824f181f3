"""Extractors give what the reference's give for the same page, with the same versions of the libraries.

`tools/conformance/html_pages.py` has written the reference's results.
"""

import importlib.metadata
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parity.html_pages import EXTRACTORS, PAGES, STOP_WORDS

from gristmill.stages.text.download import html_extractors
from gristmill.stages.text.download.html_extractors.justext import _Block, revised_kinds

RECORDED = json.loads(Path(__file__).with_name("html_extractors.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def _the_same_versions():
    for library, version in RECORDED["versions"].items():
        if library != "nemo-curator" and importlib.metadata.version(library) != version:
            pytest.skip(
                f"the results were made with {library} {version}; here is {importlib.metadata.version(library)}"
            )


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", EXTRACTORS)
def test_an_extractor_gives_what_the_reference_gives(name, page):
    kind, options = EXTRACTORS[name]
    language, html = PAGES[page]

    paragraphs = getattr(html_extractors, kind)(**options).extract_text(html, STOP_WORDS[language], language)
    assert paragraphs == RECORDED["results"][name][page]


blocks = st.builds(
    _Block,
    st.integers(0, 150).map(lambda length: "x" * length),
    st.sampled_from(["good", "bad", "short", "neargood"]),
    st.booleans(),
)


@given(st.lists(blocks, max_size=25), st.sampled_from([0, 100, 200]))
def test_neighbours_decide_as_they_do_in_the_library(some, max_heading_distance):
    from justext.core import revise_paragraph_classification

    class Paragraph:
        def __init__(self, block):
            self.text, self.cf_class, self.heading = block
            self.class_type = self.cf_class  # the library looks ahead at classes it has not copied yet

    paragraphs = [Paragraph(block) for block in some]
    revise_paragraph_classification(paragraphs, max_heading_distance)

    assert revised_kinds(some, max_heading_distance) == [paragraph.class_type for paragraph in paragraphs]
