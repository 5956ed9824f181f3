"""Formulas come out once and as TeX, and code as it is, through every extractor."""

import pytest
from tests.unit.stages.text.html.math_pages import CODE, FORMS, SENTENCES, article, code_blocks

from gristmill.stages.text.download.common_crawl import CommonCrawlHTMLExtractor
from gristmill.stages.text.download.html_extractors import HTMLExtractorAlgorithm

LEAST_SHARE = 0.95
NO_STOP_WORDS = {"required_stopword_density": 0}


class EverySecondParagraph(HTMLExtractorAlgorithm):
    """An algorithm of a user's."""

    def extract_text(self, html, stop_words, language):
        from lxml import html as lxml_html

        return ["".join(p.itertext()) for p in lxml_html.fromstring(html).iter("p")][::2]


EXTRACTORS = {
    "justext": ("justext", None),
    "resiliparse": ("resiliparse", None),
    "resiliparse without stop words": ("resiliparse", NO_STOP_WORDS),
    "trafilatura": ("trafilatura", None),
    "trafilatura without stop words": ("trafilatura", NO_STOP_WORDS),
    "cascade": ("cascade", None),
}


@pytest.fixture(scope="module", params=EXTRACTORS)
def extract(request):
    extractor = CommonCrawlHTMLExtractor(*EXTRACTORS[request.param])

    def text_of(page: str) -> str:
        return extractor.extract({"url": "u", "warc_id": "w", "source_id": "s", "content": page.encode()})["text"]

    return text_of


@pytest.mark.slow
@pytest.mark.parametrize("between", [False, True], ids=["in sentences", "between paragraphs"])
def test_nearly_all_formulas_come_out_once_and_as_tex(extract, between):
    text = extract(article(*(form.markup for form in FORMS), between=between))

    once = [form.name for form in FORMS if text.count(form.expected) == 1]
    assert "garbled" not in text
    assert len(once) >= LEAST_SHARE * len(FORMS), {form.name for form in FORMS} - set(once)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_each_form_comes_out_alone_in_a_page(form):
    extractor = CommonCrawlHTMLExtractor("resiliparse", NO_STOP_WORDS)
    text = extractor.extract({"content": article(form.markup).encode()})["text"]

    assert f"Take {form.expected} as an example" in " ".join(text.split())
    assert text.count(form.expected) == 1


@pytest.mark.slow
def test_blocks_of_code_come_out_byte_for_byte(extract):
    text = extract(f"<main>{code_blocks()}</main>")

    assert [code for code in CODE if code not in text] == []
    assert all(sentence in text for sentence in SENTENCES)
    assert "\n1\n2" not in text


def test_code_in_a_sentence_keeps_its_spaces():
    extractor = CommonCrawlHTMLExtractor("resiliparse", NO_STOP_WORDS)
    text = extractor.extract({"content": article("<code>a  =  b</code>").encode()})["text"]

    assert "Take a  =  b as an example" in text


def test_an_algorithm_of_a_user_gets_formulas_and_code_carried_too():
    extractor = CommonCrawlHTMLExtractor(EverySecondParagraph())
    page = article(*(form.markup for form in FORMS[:6]))
    text = extractor.extract({"content": page.encode()})["text"]

    assert [form.expected in text for form in FORMS[:6]] == [True, False] * 3


@pytest.mark.parametrize("wanted", [{"math": False}, {"code": False}])
def test_what_is_not_wanted_is_left_to_the_algorithm(wanted):
    extractor = CommonCrawlHTMLExtractor("resiliparse", NO_STOP_WORDS, **wanted)
    page = article(FORMS[3].markup, "<code>a  =  b</code>")
    text = extractor.extract({"content": page.encode()})["text"]

    assert ("$E = mc^2$" in text, "a  =  b" in text) == ("math" not in wanted, "code" not in wanted)


def test_a_page_that_has_the_placeholders_in_it_loses_nothing():
    extractor = CommonCrawlHTMLExtractor("resiliparse", NO_STOP_WORDS)
    words = "qzxaax qxzaax zqjaax jqzaax xqjaax vqxaax qvjaax jvqaax qzxaaqaax"
    text = extractor.extract({"content": article(words, FORMS[0].markup).encode()})["text"]

    assert words in text
    assert FORMS[0].expected in text
