"""Twelve pages that keep parsers busy: each makes some library's time grow with the square of its size, or worse."""

from tests.parity.html_pages import ENGLISH

TEXT = "".join(f"<p>{sentence} {ENGLISH[(number + 1) % 8]}</p>" for number, sentence in enumerate(ENGLISH))


def _around(markup: str) -> bytes:
    return f"<!doctype html><html><head><title>A page</title></head><body>{TEXT}{markup}{TEXT}</body></html>".encode()


HOSTILE = {
    "nested 100,000 deep": _around("<div>" * 100_000 + "x" + "</div>" * 100_000),
    "nested 8,000 deep": _around("<div>" * 8_000 + "x" + "</div>" * 8_000),
    "formatting that is never closed": _around("".join(f"<font size={k}><p>x" for k in range(10_000))),
    "100,000 attributes": _around("<div " + " ".join(f"a{k}=1" for k in range(100_000)) + ">x</div>"),
    "paragraphs that are never closed": _around("<p>word" * 200_000),
    "a table of 30,000 cells": _around("<table><tr>" + "<td><p>cell</p></td>" * 30_000 + "</tr></table>"),
    "an attribute of 4 MB": _around(f'<div title="{"a " * 2_000_000}">x</div>'),
    "entities": _around("<p>" + "&amp;&#228;&notit;" * 200_000 + "</p>"),
    "30,000 links": _around("".join(f'<li><a href="/{k}">link {k}</a></li>' for k in range(30_000))),
    "a line of 4 MB": _around("<p>" + "the word of a man " * 220_000 + "</p>"),
    "tags that are crossed": _around("<a><b><div>x</a></b>" * 30_000),
    "a million beginnings of tags": _around("<" * 1_000_000 + "<!-- " * 100_000),
}
