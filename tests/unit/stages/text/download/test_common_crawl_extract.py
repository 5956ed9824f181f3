"""A response becomes a document, or leaves with a reason."""

import inspect
import pickle
import warnings

import pytest
from tests.parity.html_pages import ENGLISH, GERMAN, PAGES
from tests.unit.stages.text.html.charset_texts import SENTENCES

from gristmill.errors import ConfigError
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download import Dropped
from gristmill.stages.text.download.common_crawl import CommonCrawlHTMLExtractor
from gristmill.stages.text.download.html_extractors import CascadeExtractor, HTMLExtractorAlgorithm, JusTextExtractor

ARTICLE = PAGES["article"][1].encode()
IDS = {"url": "https://mill.example/", "warc_id": "1234", "source_id": "part-0.warc.gz"}


def extract(content, algorithm="resiliparse", *, more=None, **options):
    return CommonCrawlHTMLExtractor(algorithm, **options).extract({**IDS, "content": content, **(more or {})})


def test_a_page_becomes_a_document_with_the_columns_users_know():
    document = extract(ARTICLE)

    assert list(document) == CommonCrawlHTMLExtractor("resiliparse").output_columns()
    assert {name: document[name] for name in IDS} == IDS
    assert document["language"] == "ENGLISH"
    assert document["text"].split("\n\n")[1] == f"{ENGLISH[0]} {ENGLISH[1]}"


def test_parameters_are_those_users_know():
    given = inspect.signature(CommonCrawlHTMLExtractor).parameters.values()
    known = {each.name: each.default for each in given if each.kind is each.POSITIONAL_OR_KEYWORD}

    assert known == {"algorithm": None, "algorithm_kwargs": None, "stop_lists": None}


def test_without_an_algorithm_it_is_justext_and_says_so():
    with pytest.warns(UserWarning, match="no algorithm was given, so it is jusText"):
        extractor = CommonCrawlHTMLExtractor()
    assert isinstance(extractor.algorithm, JusTextExtractor)


def test_options_of_an_algorithm_that_is_an_object_are_said_to_have_no_effect():
    with pytest.warns(UserWarning, match="algorithm_kwargs have no effect"):
        CommonCrawlHTMLExtractor(CascadeExtractor(), {"short_line_share": 0.5})


@pytest.mark.parametrize("name", ["justext", "resiliparse", "trafilatura", "cascade"])
def test_algorithms_have_names(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CommonCrawlHTMLExtractor(name).algorithm is not None


def test_a_name_nobody_knows_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"got 'trafilatur'; did you mean 'trafilatura'\?$"):
        CommonCrawlHTMLExtractor("trafilatur")
    with pytest.raises(ConfigError, match=r"expected fallback to be 'resiliparse' or None; got 'lynx'$"):
        CommonCrawlHTMLExtractor("resiliparse", fallback="lynx")


@pytest.mark.parametrize(
    ("content", "more", "reason"),
    [
        (b"", {}, "empty"),
        (None, {}, "empty"),
        (PAGES["no_text"][1].encode(), {}, "empty"),
        (b"%PDF-1.7", {}, "not_html"),
        (b"A sentence of plain text.", {"http_content_type": "text/plain"}, "not_html"),
        (ARTICLE, {"identified_type": "application/pdf"}, "not_html"),
        (ARTICLE, {"http_status": 404}, "http_status"),
        (ARTICLE, {"http_status": 301}, "http_status"),
        (b"<p>" + b"x" * (6 << 20), {}, "too_large"),
        (b"<p>" + b"x" * (11 << 20), {}, "too_large"),
        (("<p>" + "é" * (3 << 20)).encode("latin-1"), {}, "too_large"),
    ],
)
def test_what_is_left_out_has_a_reason(content, more, reason):
    algorithm = {"algorithm_kwargs": {"required_stopword_density": 0}}

    assert extract(content, more=more, **algorithm).reason == reason


def test_a_page_that_was_cut_off_is_left_out_only_if_that_is_wanted():
    assert isinstance(extract(ARTICLE, more={"truncated": "length"}), dict)
    assert extract(ARTICLE, more={"truncated": "length"}, drop_truncated=True) == Dropped("truncated", "length")


def test_a_language_without_a_list_is_left_out_where_stop_words_count():
    lists = {"GERMAN": frozenset({"und"})}

    assert extract(ARTICLE, stop_lists=lists) == Dropped("no_stop_list", "ENGLISH")
    without_rule = extract(ARTICLE, stop_lists=lists, algorithm_kwargs={"required_stopword_density": 0})
    assert without_rule["language"] == "ENGLISH"


@pytest.mark.parametrize("key", ["GERMAN", "de"])
def test_lists_may_be_given_by_name_or_by_code(key):
    stop_lists = {key: frozenset(["die", "und", "der", "das", "im", "ist", "er", "es", "den", "sich", "man"])}
    page = PAGES["german"][1].encode()

    document = extract(page, stop_lists=stop_lists, algorithm_kwargs={"required_stopword_density": 0.2})
    assert document["language"] == key
    assert GERMAN[0] in document["text"]


@pytest.mark.parametrize(
    ("language", "name"), [("ja", "JAPANESE"), ("zh-cn", "CHINESE"), ("ru", "RUSSIAN"), ("tr", "TURKISH")]
)
def test_the_language_is_that_of_the_visible_text(language, name):
    words = " ".join(ENGLISH)
    body = "".join(f"<p>{sentence}</p>" for sentence in SENTENCES[language])
    head = f"<script>var text = '{words}';</script><style>/* {words} */</style>"
    page = f"<html lang=en><head>{head}</head><body>{body}</body></html>"

    assert extract(page.encode(), algorithm_kwargs={"required_stopword_density": 0})["language"] == name


def test_bytes_that_are_no_text_are_quarantined():
    noise = b"<html>" + bytes((k * 167 + k // 7 * 31) % 256 for k in range(5_000))

    assert extract(noise, more={"identified_type": "text/html"}).kind == "undecodable"


class Slow(HTMLExtractorAlgorithm):
    """Never ends."""

    def extract_text(self, html, stop_words, language):
        while True:
            pass


def test_a_page_that_takes_too_long_is_quarantined_by_name():
    quick = IngestLimits(page_s=0.05)
    found = extract(ARTICLE, Slow(), limits=quick)

    assert isinstance(found, Quarantined)
    assert (found.kind, found.error) == (
        "time_limit",
        "time_limit: expected to finish within 0.05 s; it was stopped",
    )


def test_a_page_that_takes_too_long_becomes_plain_text_if_that_is_wanted():
    document = extract(ARTICLE, Slow(), limits=IngestLimits(page_s=0.05), fallback="resiliparse")

    assert ENGLISH[0] in document["text"]


@pytest.mark.parametrize(
    ("limit", "page", "error"),
    [
        ({"max_html_depth": 50}, "<div>" * 60, "expected at most 50 nested elements; got 60"),
        ({"max_html_tags": 50}, "<br>" * 60, "expected at most 50 start tags; got 60"),
        ({"max_attributes": 50}, f"<p {'x ' * 60}>", "expected at most 50 attributes of one tag; got 60"),
        ({"max_open_formatting": 50}, "<i>" * 60, "expected at most 50 formatting elements open at once; got 60"),
    ],
)
def test_a_page_that_no_parser_should_be_given_is_quarantined_with_the_limit(limit, page, error):
    found = extract(f"<html>{page}".encode(), limits=IngestLimits(**limit))

    assert (found.kind, found.error) == (
        "too_complex",
        error.replace("got 60", f"got {found.error.rpartition(' ')[2]}"),
    )


@pytest.mark.parametrize("algorithm", ["justext", "resiliparse", "trafilatura", "cascade"])
def test_a_page_too_deep_for_an_extractor_becomes_plain_text(algorithm):
    page = "<div>" * 1_500 + f"<p>{ENGLISH[0]}</p>" + "</div>" * 1_500 + f"<p>{ENGLISH[1]}</p>"

    assert extract(page.encode(), algorithm)["text"] == f"{ENGLISH[0]}\n\n{ENGLISH[1]}"


@pytest.mark.parametrize("depth", [200, 260, 400])
@pytest.mark.parametrize("algorithm", ["justext", "trafilatura"])
def test_what_lies_deeper_than_a_library_reads_is_not_lost(algorithm, depth):
    inner = f"<p>{' '.join(ENGLISH)}</p>"
    page = (
        f"<p>{' '.join(ENGLISH[:4])}</p>"
        + "<div>" * depth
        + inner
        + "</div>" * depth
        + f"<p>{' '.join(ENGLISH[4:])}</p>"
    )

    assert ENGLISH[7] in extract(page.encode(), algorithm)["text"]


@pytest.mark.parametrize("algorithm", ["resiliparse", "cascade"])
def test_cells_without_a_space_between_them_do_not_become_one_word(algorithm):
    rows = "".join(f"<tr><td>weight</td><td>{sentence}</td></tr>" for sentence in ENGLISH)
    text = extract(f"<html><body><main><table>{rows}</table></main></body></html>".encode(), algorithm)["text"]

    assert f"weight {ENGLISH[0]}" in text or ENGLISH[0] in text.split("\n\n")


def test_an_extractor_travels_without_what_it_has_loaded():
    extractor = CommonCrawlHTMLExtractor("resiliparse")
    before = extractor.extract({**IDS, "content": ARTICLE})

    assert pickle.loads(pickle.dumps(extractor)).extract({**IDS, "content": ARTICLE}) == before


def test_text_that_is_decoded_already_is_taken_as_it_is():
    assert extract(ARTICLE.decode()) == extract(ARTICLE)
