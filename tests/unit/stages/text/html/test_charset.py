"""Pages become the text they are, with a right declaration, a wrong one and none."""

import pytest
from tests.unit.stages.text.html.charset_texts import CHARSETS, SENTENCES, pages_in

from gristmill.stages.text.html.charset import PageDecoder


@pytest.fixture(scope="module")
def decoder():
    return PageDecoder()


@pytest.mark.slow
def test_at_least_98_of_100_pages_without_a_declaration_are_decoded_right(decoder):
    right = dict.fromkeys(CHARSETS, 0)
    for charset in CHARSETS:
        for text, data in pages_in(charset):
            decoded = decoder.decode(data)
            right[charset] += decoded is not None and decoded.text == text

    assert sum(right.values()) >= 0.98 * 600, right


@pytest.mark.parametrize("charset", [*CHARSETS, "utf-8"])
def test_every_page_with_a_right_declaration_is_decoded_right(decoder, charset):
    for text, data in pages_in(charset, declared=charset):
        assert decoder.decode(data).text == text
        assert decoder.decode(data, f"text/html; charset={charset.upper()}").text == text


@pytest.mark.parametrize("lie", ["iso-8859-1", "windows-1251", "gb2312", "shift_jis", "koi8-r"])
def test_utf_8_with_a_wrong_declaration_is_still_utf_8(decoder, lie):
    for text, data in pages_in("utf-8", declared=lie):
        assert decoder.decode(data, f"text/html; charset={lie}").text == text


@pytest.mark.parametrize("charset", ["gb2312", "big5", "euc-kr", "shift_jis", "windows-1251"])
def test_a_page_that_says_utf_8_and_is_not_is_decoded_by_what_it_is(decoder, charset):
    right = sum(
        decoder.decode(data, "text/html; charset=utf-8").text == text for text, data in pages_in(charset, "utf-8")
    )

    assert right >= 38


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("latin-1", "cp1252"),
        ("latin1", "cp1252"),
        ("ISO-8859-1", "cp1252"),
        ("us-ascii", "cp1252"),
        ("gb2312", "gb18030"),
        ("GBK", "gb18030"),
        ("x-sjis", "cp932"),
        ("ks_c_5601-1987", "cp949"),
        ("tis-620", "cp874"),
        ("x-mac-cyrillic", "mac_cyrillic"),
        ("UTF8", "utf-8"),
        ("big5-hkscs", "big5hkscs"),
    ],
)
def test_labels_mean_what_browsers_take_them_for(decoder, label, codec):
    assert decoder.codecs_of(label)[0] == codec


@pytest.mark.parametrize("label", ["", "nonsense", "utf-99", "\x00"])
def test_a_label_nobody_knows_means_nothing(decoder, label):
    assert decoder.codecs_of(label) == ()


@pytest.mark.parametrize(("mark", "codec"), [("\ufeff", "utf-8"), ("\ufeff", "utf-16-le"), ("\ufeff", "utf-16-be")])
def test_a_byte_order_mark_comes_before_everything(decoder, mark, codec):
    decoded = decoder.decode(f"{mark}<p>Grüße".encode(codec), "text/html; charset=windows-1251")

    assert decoded[:3] == ("<p>Grüße", codec, "mark")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_found_by_its_zeros(decoder, codec):
    page = "<html><head><title>A title that is long enough</title></head><body>Grüße</body></html>"

    assert decoder.decode(page.encode(codec)).text == page


def test_a_declaration_behind_the_first_bytes_is_not_one(decoder):
    page = "<html>" + " " * 2_000 + "<meta charset=windows-1251>" + "".join(SENTENCES["ja"])

    assert decoder.decode(page.encode("shift_jis")).text == page


@pytest.mark.parametrize("cut", [1, 2])
def test_a_page_that_was_cut_within_a_character_keeps_the_rest(decoder, cut):
    page = "".join(SENTENCES["ja"])

    decoded = decoder.decode(page.encode()[:-cut])
    assert decoded.text == page[:-1] + "\ufffd"
    assert decoded.num_broken == 1


def test_a_page_of_two_charsets_keeps_what_most_of_it_is_in(decoder):
    page = "".join(SENTENCES["ru"]).encode() + "é".encode("latin-1") + "".join(SENTENCES["ru"]).encode()

    assert decoder.decode(page).text == "".join(SENTENCES["ru"]) + "\ufffd" + "".join(SENTENCES["ru"])


def test_bytes_that_are_no_text_have_no_charset(decoder):
    noise = bytes((k * 167 + k // 7 * 31) % 256 for k in range(5_000))

    assert decoder.decode(noise) is None


def test_an_xml_declaration_goes_and_nul_is_replaced(decoder):
    page = b'\n<?xml version="1.0" encoding="iso-8859-1"?>\n<html>a\0b</html>'

    assert decoder.decode(page).text == "\n<html>a\ufffdb</html>"


@pytest.mark.parametrize("data", [b"", b"<", b"\x1b$", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xd8\x00" * 3])
def test_odd_bytes_never_raise(decoder, data):
    decoder.decode(data)
