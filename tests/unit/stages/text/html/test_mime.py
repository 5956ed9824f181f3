"""A record is what the crawler identified, what its bytes say, or what the server said."""

import pytest

from gristmill.stages.text.html.mime import kind_of

PAGE = b"<!DOCTYPE html><html><body>A page</body></html>"
NOTEBOOK = b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


@pytest.mark.parametrize(
    ("data", "identified_type", "content_type", "kind"),
    [
        (PAGE, None, None, "html"),
        (PAGE, "application/xhtml+xml", "text/plain", "html"),
        (PAGE, "application/octet-stream", None, "html"),
        (PAGE, None, "application/octet-stream", "html"),
        (PAGE, None, "text/plain", "html"),
        (b"  \n<p>A paragraph", None, None, "html"),
        (b"\xef\xbb\xbf<HTML>", None, None, "html"),
        (b"<!-- a comment --><b>x", None, None, "html"),
        (b"<?xml version='1.0'?><!DOCTYPE html><html>", None, None, "html"),
        (b"<?xml version='1.0'?><rss>", None, "text/html", "other"),
        (b"A sentence <i>with</i> tags", None, None, "html"),
        (b"A sentence with tags</p>", None, "text/html; charset=utf-8", "html"),
        (PAGE.decode().encode("utf-16-le"), None, None, "html"),
        (b"A sentence, 3 < 5.", None, None, "text"),
        (b"A sentence.", "text/plain", None, "text"),
        (b"%PDF-1.7\n...", None, "text/html", "pdf"),
        (b"\n\n%PDF-1.4", None, None, "pdf"),
        (PAGE, "application/pdf", None, "pdf"),
        (NOTEBOOK, None, None, "notebook"),
        (NOTEBOOK, "application/json", None, "notebook"),
        (NOTEBOOK, "text/plain", None, "notebook"),
        (b'{"a": 1}', None, "application/json", "other"),
        (b"\x89PNG\r\n", None, "text/html", "other"),
        (b"\x00\x01\x02\x03\x04", None, None, "other"),
        (b"body { color: red }", None, "text/css", "other"),
        (b"", None, None, "text"),
    ],
)
def test_the_kind_of_a_record(data, identified_type, content_type, kind):
    assert kind_of(data, identified_type=identified_type, content_type=content_type) == kind
