"""The text of a PDF: in reading order, without headers, words put together; or the reason why there is none."""

import pytest
from tests.pdf_files import HEIGHT, WIDTH, lines_at, of_text, pdf, picture, text_at

from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download import Dropped
from gristmill.stages.text.pdf.extract_pdf import PdfText, extract_pdf, is_garbled

LIMITS = IngestLimits()
WIDE = "A line of text that is wide enough to fill all of its column"
NARROW = "A line that fills its column up"


def read(content, **options):
    return extract_pdf(content, LIMITS, **options)


def test_lines_that_fill_their_column_are_joined():
    found = read(of_text(f"{WIDE} one", f"{WIDE} two", "and ends here.", "A new line."))
    assert found.text == f"{WIDE} one {WIDE} two and ends here.\nA new line."
    assert (found.num_pages, found.scanned_share, found.text_garbled_share) == (1, 0, 0)


def test_a_gap_is_a_paragraph():
    page = lines_at(50, 700, [WIDE, WIDE]) + lines_at(50, 640, [WIDE])
    assert read(pdf(page)).text == f"{WIDE} {WIDE}\n\n{WIDE}"


def test_columns_are_read_one_after_the_other_below_a_heading():
    left = lines_at(50, 650, [f"{NARROW} L{k}" for k in range(5)])
    right = lines_at(320, 650, [f"{NARROW} R{k}" for k in range(5)])
    interleaved = b"".join(sum(zip(left.splitlines(True), right.splitlines(True), strict=True), ()))
    page = interleaved + text_at(50, 720, "A heading that goes across both of the columns of this page", 14)
    found = read(pdf(page)).text.split("\n\n")
    assert found[0].startswith("A heading")
    assert [word for word in found[1].split() if word[0] == "L"] == ["L0", "L1", "L2", "L3", "L4"]
    assert [word for word in found[2].split() if word[0] == "R"] == ["R0", "R1", "R2", "R3", "R4"]


def test_a_divided_word_is_put_together_unless_its_parts_are_words_of_the_document():
    lines = [f"{WIDE} and some exam-", "ple of a well-", "known re-", "sult, known well."]
    assert read(of_text(*lines)).text == f"{WIDE} and some example of a well-known result, known well."


def test_what_is_at_the_edge_of_most_pages_is_left_out():
    pages = [
        text_at(50, 780, "Journal of Tests 12 (2024)")
        + lines_at(50, 700, [f"The text of page {'abcdef'[k]} alone.", "Another line."])
        + text_at(300, 20, f"Page {k + 1}")
        for k in range(6)
    ]
    found = read(pdf(*pages)).text
    assert "Journal" not in found
    assert "Page 3" not in found
    assert found.count("Another line.") == 6
    assert "Journal" in read(pdf(*pages[:2])).text


def scan():
    return picture(0, 0, WIDTH, HEIGHT)


def test_scanned_pages_need_a_model():
    found = read(pdf(scan(), scan(), lines_at(50, 700, [WIDE])))
    assert found == Dropped("needs_ocr", 0.6667, "scanned_share ≤ 0.5")
    kept = read(pdf(scan(), lines_at(50, 700, [WIDE])))
    assert (kept.text, kept.scanned_share) == (WIDE, 0.5)
    assert read(pdf(scan(), scan()), max_scanned_share=1.0) == Dropped("empty")


def test_a_picture_beside_text_is_not_a_scan():
    assert read(pdf(scan() + lines_at(50, 700, [WIDE]))).scanned_share == 0
    assert read(pdf(picture(0, 0, WIDTH, HEIGHT / 2))) == Dropped("empty")


def test_characters_without_a_meaning_need_a_model():
    assert read(pdf(text_at(50, 700, "A" * 30 + "b" * 70), unicode_map="E012")).reason == "needs_ocr"
    kept = read(pdf(text_at(50, 700, "A" * 10 + "b" * 90), unicode_map="E012"))
    assert kept.text_garbled_share == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("code", "garbled"), [(0x41, False), (0xE000, True), (0xF8FF, True), (0xFFFD, True), (1, True), (0x20AC, False)]
)
def test_what_counts_as_garbled(code, garbled):
    assert is_garbled(code) is garbled


def test_limits_on_size_and_pages():
    content = of_text(WIDE)
    assert extract_pdf(content, IngestLimits(max_pdf_bytes=100)).reason == "too_large"
    many = pdf(*[lines_at(50, 700, ["x"])] * 4)
    assert extract_pdf(many, IngestLimits(max_pdf_pages=3)) == Dropped("too_large", 4, "≤ 3 pages")


def test_bytes_that_are_not_a_pdf():
    assert read(b"") == Dropped("not_pdf")
    assert read(b"<html>%PDF is a format</html>".rjust(3000)) == Dropped("not_pdf")


def test_a_pdf_that_is_cut_off_is_dropped_as_such_unless_it_can_be_read():
    content = of_text(WIDE)
    assert read(content[: len(content) // 3]).reason == "truncated"
    whole_but_for_the_end = read(content[:-40])
    assert isinstance(whole_but_for_the_end, PdfText) or whole_but_for_the_end.reason == "truncated"


def test_a_pdf_that_is_broken_is_quarantined():
    found = read(b"%PDF-1.4\n" + b"rubbish " * 100 + b"%%EOF")
    assert isinstance(found, Quarantined)
    assert found.kind == "broken_pdf"
    assert found.error.startswith("expected a PDF; got ")


def test_pages_so_far_are_with_what_takes_too_long():
    pages = [lines_at(50, 700, [f"{WIDE} {k}"]) for k in range(5)]
    found = extract_pdf(pdf(*pages), IngestLimits(pdf_s=1e-9))
    assert (found.kind, found.document) == ("time_limit", f"{WIDE} 0")
    assert "expected 5 pages within 1e-09 s" in found.error


def test_a_page_that_takes_too_long_is_enough():
    assert extract_pdf(of_text(WIDE), IngestLimits(pdf_page_s=1e-9)).kind == "time_limit"


@pytest.mark.parametrize("cut", range(0, 800, 37))
def test_damage_anywhere_never_raises(cut):
    content = bytearray(of_text(WIDE, WIDE))
    cut %= len(content)
    for damaged in (content[:cut], content[:cut] + b"\xff" * 8 + content[cut + 8 :]):
        assert isinstance(read(bytes(damaged)), PdfText | Dropped | Quarantined)


def test_a_drawing_made_of_letters_has_an_end():
    page = b"".join(text_at(k % 600, k * 7 % 800, "xyz" * 30, 1) for k in range(300))
    assert isinstance(read(pdf(page)), PdfText)
