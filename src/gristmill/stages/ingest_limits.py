"""`IngestLimits`: how large, how deep and how long a record may be before it is dropped or put aside.

A crawl brings whatever others have put there: pages of 50,000 nested elements, archives that unpack to a gigabyte of
zeros, macros that expand for ever. What happens at each limit is said beside it and in `docs/reference/ingest.md`.
"""

from dataclasses import dataclass, fields

from gristmill.errors import ConfigError

_MIB = 1 << 20


@dataclass(frozen=True)
class IngestLimits:
    """One table for all sources; a source ignores what does not concern it. Sizes are in bytes, times in seconds."""

    max_record_bytes: int = 64 * _MIB  # a record of a crawl: above, quarantined

    max_html_bytes: int = 5 * _MIB  # a page: above, dropped
    main_content_depth: int = 1_000  # nested elements of a page: above, plain text without a search for main content
    max_html_depth: int = 20_000  # nested elements: above, quarantined. Parsers take a second for that many
    max_open_formatting: int = 2_000  # elements like `b` and `font` open at once: above, quarantined
    max_html_tags: int = 150_000  # start tags of a page: above, quarantined
    max_attributes: int = 2_000  # attributes of one tag: above, quarantined
    page_s: float = 10.0  # one page in one extractor: above, quarantined, or the fallback that was asked for

    max_tar_member_bytes: int = 200_000_000  # a paper of arXiv as it is stored: above, quarantined
    max_project_bytes: int = 64 * _MIB  # the TeX of a paper unpacked: above, quarantined; with pictures 16 times that
    max_project_files: int = 2_000  # files of a paper: above, quarantined
    max_input_depth: int = 20  # files within files of a paper: deeper ones are left out, the text is kept
    max_expansions: int = 100_000  # macros expanded in one paper: then expansion stops, the text is kept
    max_growth: float = 4.0  # how many times its size a paper may get by expansion: the same
    paper_s: float = 60.0  # one paper: above, quarantined

    max_wiki_bytes: int = 20 * _MIB  # a page of Wikipedia: above, quarantined
    max_template_depth: int = 100  # templates within templates: the innermost are dropped

    max_pdf_bytes: int = 200_000_000  # a PDF: above, dropped
    max_pdf_pages: int = 2_000  # pages of a PDF: above, dropped
    max_pdf_memory: int = 2048 * _MIB  # what reading one PDF may take, on Linux: above, quarantined
    pdf_s: float = 60.0  # one PDF: above, quarantined with the pages so far
    pdf_page_s: float = 10.0  # one page of a PDF: the same

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            kinds = (int,) if limit.type is int else (int, float)
            if not isinstance(value, kinds) or isinstance(value, bool) or value <= 0:
                what = "a whole number" if kinds == (int,) else "a number"
                raise ConfigError(f"IngestLimits: expected {limit.name} to be {what} > 0; got {value!r}")
