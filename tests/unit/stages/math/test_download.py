"""All text of pages, notebooks and plain files, with formulas as TeX; what has no text leaves with a reason."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.stages.text.html.math_pages import FORMS, SENTENCES, article

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.context import Quarantined
from gristmill.stages.math.download import MathContentExtractor, MathExtractStage
from gristmill.stages.math.download.notebooks import notebook_text
from gristmill.stages.text.download import Dropped
from gristmill.stages.text.io import JsonlWriter, ParquetReader

PAGE = b"""<html><body><nav>Home</nav><h2>Sums</h2>
<p>Take <script type="math/tex">a_1</script> as <b>one</b>
<i>of</i>
them.<br>A second line.</p>
<ul><li>x<ul><li>y</li></ul></li><li>z</li></ul><ol><li>first</li><li>second</li></ol>
<table><tr><th>a</th><th>b|c</th></tr><tr><td>1</td><td>2</td></tr></table>
<pre><code class="language-python">def f():
    return 1
</code></pre><blockquote><p>q1</p><p>q2</p></blockquote><script>hidden()</script></body></html>"""

MARKDOWN = """Home

## Sums

Take $a_1$ as **one** *of* them.
A second line.

- x
  - y
- z

1. first
2. second

| a | b\\|c |
|---|---|
| 1 | 2 |

```python
def f():
    return 1
```

> q1
>
> q2"""

NOTEBOOK = {
    "nbformat": 4,
    "metadata": {"language_info": {"name": "python"}},
    "cells": [
        {"cell_type": "markdown", "source": ["# Sums\n", "Take $a_1$."]},
        {
            "cell_type": "code",
            "source": "f(1)",
            "outputs": [
                {"output_type": "execute_result", "data": {"text/plain": ["2"], "image/png": "iVBOR"}},
                {"output_type": "display_data", "data": {"text/latex": "$x^2$", "text/plain": "x**2"}},
                {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]},
                {"output_type": "error", "ename": "ValueError", "evalue": "\x1b[31mno\x1b[0m", "traceback": []},
            ],
        },
    ],
}


def extracted(data, mime_type="text/html", url="https://a.example/", **options):
    return MathContentExtractor(**options).extract({"binary_content": data, "url": url, "mime_type": mime_type})


def test_a_page_has_all_its_text_and_its_formulas():
    found = extracted(PAGE)

    assert (found["type"], found["magic_mime_type"], found["url"]) == ("html", "text/html", "https://a.example/")
    lines = found["text"].split("\n")
    assert lines[:2] == ["Home", "Sums"]
    assert "Take $a_1$ as one of them." in lines
    assert "a b|c" in lines
    assert "hidden" not in found["text"]


def test_markdown_keeps_headings_lists_tables_code_and_quotations():
    assert extracted(PAGE, output_format="markdown")["text"] == MARKDOWN


@pytest.mark.parametrize("output_format", ["text", "markdown"])
def test_every_form_of_formula_comes_out_once_and_as_tex(output_format):
    text = extracted(article(*(form.markup for form in FORMS)).encode(), output_format=output_format)["text"]

    assert [form.name for form in FORMS if text.count(form.expected) != 1] == []
    assert "garbled" not in text
    assert all(sentence in text for sentence in SENTENCES)


def test_a_notebook_is_its_cells_and_what_came_out_of_them():
    data = json.dumps(NOTEBOOK).encode()
    for mime_type, url in (("application/json", "https://a.example/n"), ("text/plain", "https://a.example/n.ipynb")):
        found = extracted(data, mime_type, url)
        assert found["type"] == "notebook"
        assert found["text"].split("\n\n") == [
            "# Sums\nTake $a_1$.",
            "f(1)",
            "2",
            "$x^2$",
            "one\ntwo",
            "ValueError: no",
        ]
    assert "```python\nf(1)\n```" in extracted(data, "application/json", output_format="markdown")["text"]


def test_a_notebook_of_the_format_before_is_read_too():
    cells = [{"cell_type": "code", "input": "1+1", "outputs": [{"output_type": "pyout", "text": "2"}]}]
    old = {"nbformat": 3, "worksheets": [{"cells": cells}]}

    assert notebook_text(json.dumps(old).encode()) == "1+1\n\n2"


@pytest.mark.parametrize(
    "data",
    [b"{", b"[]", b"{}", b'{"nbformat": 4}', b'{"nbformat": 3, "worksheets": [1, {"cells": null}]}', b"[" * 100_000],
)
def test_what_only_looks_like_a_notebook_does_not_raise(data):
    assert notebook_text(data) in (None, "")


def test_plain_text_and_tex_stay_as_they_are():
    tex = b"\\documentclass{article}\n$a < b$ \\begin{document}"

    assert extracted(b"just $x$ words\n\nmore", "text/plain")["text"] == "just $x$ words\n\nmore"
    assert extracted(tex, "text/x-tex") == {
        "text": tex.decode(),
        "url": "https://a.example/",
        "type": "text",
        "magic_mime_type": "text/plain",
    }


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "empty"),
        (b"", "empty"),
        (b"<html></html>", "empty"),
        (b"%PDF-1.7 ...", "not_text"),
        (b"\x89PNG\r\n", "not_text"),
        (b"a" * 6_000_000, "too_large"),
        (b"<p>" + b"a " * 3_000_000, "too_large"),
    ],
)
def test_what_has_no_text_leaves_with_a_reason(data, reason):
    found = extracted(data, "text/plain" if data and data[:1] == b"a" else "text/html")

    assert isinstance(found, Dropped)
    assert found.reason == reason


def test_a_page_nested_too_deep_is_quarantined():
    found = extracted(b"<div>" * 100_000)

    assert isinstance(found, Quarantined)
    assert found.kind == "too_complex"


def test_another_format_is_refused():
    with pytest.raises(ConfigError, match=r"expected output_format to be one of .* got 'html'"):
        MathContentExtractor(output_format="html")


def test_rows_of_a_batch_become_documents_and_the_books_hold(tmp_path):
    rows = [
        {"binary_content": PAGE, "url": "https://a.example/1", "mime_type": "text/html", "file_name": "f"},
        {"binary_content": b"%PDF-1.7", "url": "https://a.example/2", "mime_type": "text/html", "file_name": "f"},
        {"binary_content": None, "url": "https://a.example/3", "mime_type": None, "file_name": "f"},
        {"binary_content": b"<div>" * 100_000, "url": "https://a.example/4", "mime_type": None, "file_name": "f"},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    stages = [
        ParquetReader(str(tmp_path / "rows.parquet")),
        MathExtractStage(MathContentExtractor(), add_filename_column=True),
        JsonlWriter(str(tmp_path / "out")),
    ]
    result = Pipeline("math", stages=stages).run(LocalExecutor(num_workers=0), quiet=True)

    [path] = Path(tmp_path / "out").glob("[!.]*.jsonl")
    document = json.loads(path.read_text())
    assert list(document) == ["text", "url", "type", "magic_mime_type", "file_name"]
    assert (result.read, result.written, result.quarantined) == (4, 1, 1)
    assert result.dropped == {"extract_mathcontentextractor": {"not_text": 1, "empty": 1}}
