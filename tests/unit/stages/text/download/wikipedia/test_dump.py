"""Pages of a dump: each once and in order however the file is cut, and whatever cannot be read is on record."""

import bz2
import gzip
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wiki_dumps import page, site, streams

from gristmill.stages.context import Quarantined
from gristmill.stages.text.download.wikipedia.dump import Dump, Page, Site, read_site
from gristmill.tasks import FileSlice

MOST = 1 << 20
counter = itertools.count()
PAGES = [page(k, "A text with <tags> & more. " * (k % 5 + 1), title=f"É {k}") for k in range(20)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("dumps")


def write(directory, content, suffix=".xml.bz2"):
    path = directory / f"{next(counter)}{suffix}"
    path.write_bytes(content)
    return str(path)


def read(path, cuts=(), *, size=0, most=MOST):
    """What all parts give, one after another."""
    if not cuts:
        return list(Dump(FileSlice(path), most).pages())
    bounds = [0, *sorted({cut % size for cut in cuts} - {0}), size]
    parts = [FileSlice(path, bound) for bound in itertools.pairwise(bounds)]
    return [found for part in parts for found in Dump(part, most).pages()]


def ids(found):
    return [each.id if isinstance(each, Page) else each.kind for each in found]


def by_pages(pages):
    return b"".join(streams(pages))


def by_bytes(pages):
    """As compressors do that know nothing of pages: streams of so many bytes."""
    content = (site() + "".join(pages) + "</mediawiki>\n").encode()
    return b"".join(bz2.compress(content[k : k + 700]) for k in range(0, len(content), 700))


def as_one_stream(pages):
    return bz2.compress((site() + "".join(pages) + "</mediawiki>\n").encode())


def plain(pages):
    return (site() + "".join(pages) + "</mediawiki>\n").encode()


cuts = st.lists(st.integers(0, 10**6), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("make", "suffix"), [(by_pages, ".xml.bz2"), (by_bytes, ".bz2"), (as_one_stream, ".bz2"), (plain, ".xml")]
)
def test_any_cut_gives_the_pages_of_the_whole_file_in_order(directory, make, suffix):
    content = make(PAGES)
    path = write(directory, content, suffix)
    whole = read(path)
    assert ids(whole) == [str(k) for k in range(20)]

    @given(cuts)
    def check(cuts):
        assert read(path, cuts, size=len(content)) == whole

    check()


def test_every_single_cut_of_a_small_file(directory):
    for content, suffix in ((by_bytes(PAGES[:3]), ".bz2"), (plain(PAGES[:2]), ".xml")):
        path = write(directory, content, suffix)
        whole = read(path)
        for cut in range(1, len(content)):
            assert read(path, [cut], size=len(content)) == whole, cut


def test_a_page_has_what_the_dump_says(directory):
    [found] = read(write(directory, by_pages([page(7, "a & b", title="A < B", redirect="C")])))
    assert found == Page("A < B", "0", "7", True, "1007", "2024-01-01T00:00:00Z", "wikitext", "a & b")
    [empty] = read(write(directory, by_pages([page(8, None)])))
    assert empty.text is None


@pytest.mark.parametrize("pack", [gzip.compress, lambda content: content])
def test_dumps_may_be_compressed_otherwise_or_not_at_all(directory, pack):
    suffix = ".xml.gz" if pack is gzip.compress else ".xml"
    assert len(read(write(directory, pack(plain(PAGES)), suffix))) == 20


@given(cuts, st.integers(0, 10**6), st.integers(1, 255))
def test_any_cut_of_a_damaged_file_gives_the_same_pages_and_the_same_records(directory, cuts, where, flip):
    content = bytearray(by_pages(PAGES))
    content[where % len(content)] ^= flip
    path = write(directory, bytes(content))

    whole = read(path)

    assert read(path, cuts, size=len(content)) == whole
    # A few bits may be anything: the size of blocks, for one.
    assert any(isinstance(each, Quarantined) for each in whole) or ids(whole) == [str(k) for k in range(20)]


def test_damage_costs_its_stream_and_is_told_with_its_place(directory):
    parts = streams(PAGES)
    start = sum(map(len, parts[:3]))
    content = bytearray(b"".join(parts))
    content[start + 30] ^= 1

    found = read(write(directory, bytes(content)))

    assert ids(found) == [*map(str, range(6)), "damaged", *map(str, range(9, 20))]
    record = found[6]
    assert (record.block_start, record.lost_bytes, record.num_documents) == (start, len(parts[3]), 0)


def test_a_file_that_was_cut_between_two_streams_does_not_pass_for_whole(directory):
    parts = streams(PAGES)
    found = read(write(directory, b"".join(parts[:-1])))
    assert ids(found) == [*map(str, range(20)), "damaged"]
    assert "expected </mediawiki> at its end" in found[-1].error


def test_a_page_that_is_not_xml_costs_that_page(directory):
    broken = PAGES[1].replace("</title>", "</tittle>")
    without = PAGES[2].replace("<title>É 2</title>", "")
    found = read(write(directory, by_pages([PAGES[0], broken, without, PAGES[3]])))
    assert ids(found) == ["0", "broken_page", "broken_page", "3"]
    assert "expected a page in XML; got mismatched tag" in found[1].error
    assert "<title>É 1" in found[1].document


def test_a_page_that_defines_entities_is_not_one(directory):
    bomb = '  <page><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><title>&a;</title><id>1</id></page>\n'
    assert ids(read(write(directory, by_pages([bomb, PAGES[0]])))) == ["broken_page", "0"]


@pytest.mark.parametrize("cut", [(), (300, 5000, 100_000)])
def test_a_page_that_is_too_large_is_passed_over_without_being_held(directory, cut):
    large = page(1, "x" * 3_000_000)
    content = plain([PAGES[0], large, PAGES[2]])
    path = write(directory, content, ".xml")
    found = read(path, cut, size=len(content), most=100_000)
    assert ids(found) == ["0", "too_large", "2"]
    assert f"expected a page of at most 100,000 bytes; got {len(large.strip()):,}" in found[1].error


def test_a_file_that_is_not_a_dump_is_damaged_as_a_whole(directory):
    content = bz2.compress(b"<html>something else</html>" * 100)
    path = write(directory, content)
    [record] = read(path, [10, 20], size=len(content))
    assert (record.kind, record.lost_bytes) == ("damaged", len(content))
    assert "expected <mediawiki>" in record.error


def test_a_dump_says_what_its_namespaces_are_called():
    content = site("zh-min-nan", media="Mûi-thé", file="tóng-àn", category="Lūi-pia̍t").encode()
    found = read_site(content)
    assert (found.language, found.files, found.categories) == ("zh-min-nan", ("tóng-àn", "Mûi-thé"), ("Lūi-pia̍t",))
    assert read_site(b"<mediawiki>") == Site()
    assert read_site(b"<mediawiki><siteinfo>&broken</siteinfo>") == Site()
    assert Site("dewiktionary").language == "de"
    assert Site("commons").language == ""


def test_dumps_without_numbers_of_namespaces_tell_articles_by_their_titles(directory):
    old = [page(k, "x", title=title).replace("    <ns>0</ns>\n", "") for k, title in enumerate(["A", "Talk:A", "B: C"])]
    assert [each.namespace for each in read(write(directory, by_pages(old)))] == ["0", "", "0"]
