"""`CommonCrawlHTMLExtractor`: a response of a web server in, its text out."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

from gristmill.errors import ConfigError, nearest
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download.base import DocumentExtractor, Dropped
from gristmill.stages.text.download.html_extractors import (
    CascadeExtractor,
    HTMLExtractorAlgorithm,
    JusTextExtractor,
    ResiliparseExtractor,
    TrafilaturaExtractor,
)
from gristmill.stages.text.html.extract_html import EMPTY, PageOptions, PageReader, check_ready
from gristmill.stages.text.html.mime import kind_of

ALGORITHMS: dict[str, type[HTMLExtractorAlgorithm]] = {
    "justext": JusTextExtractor,
    "resiliparse": ResiliparseExtractor,
    "trafilatura": TrafilaturaExtractor,
    "cascade": CascadeExtractor,
}
FALLBACKS = (None, "resiliparse")

NOT_HTML, HTTP_STATUS, TRUNCATED = "not_html", "http_status", "truncated"
REASONS = {
    NOT_HTML: "The response is not a page: an image, a PDF, JSON, plain text.",
    HTTP_STATUS: "The server answered with a status outside 200 to 299.",
    TRUNCATED: "The crawler cut the page off, and `drop_truncated` is set.",
}


@dataclass(eq=False)
class CommonCrawlHTMLExtractor(DocumentExtractor):
    """Text of web pages, by an algorithm.

    `algorithm`         "justext", "resiliparse", "trafilatura", "cascade", or an object; jusText if none is given
    `algorithm_kwargs`  for an algorithm given by name
    `stop_lists`        stop words by language, as "ENGLISH" or as "en"; jusText's lists by default
    `math`, `code`      carry formulas and code around the algorithm, so that they come out whole
    `limits`            how large, how deep and how long a page may be
    `fallback`          "resiliparse": plain text for a page that takes too long. By default it is quarantined, because
                        what takes too long depends on the machine
    `drop_truncated`    leave out pages that the crawler has cut off
    `extra`             more columns of a record to keep, such as "warc_offset", with which a page is found again
    """

    batch_deadline_s: ClassVar[float | None] = 180.0
    declares_all_columns: ClassVar[bool] = True

    algorithm: HTMLExtractorAlgorithm | str | None = None
    algorithm_kwargs: Mapping[str, Any] | None = None
    stop_lists: Mapping[str, frozenset[str]] | None = None
    _: KW_ONLY
    math: bool = True
    code: bool = True
    limits: IngestLimits = field(default_factory=IngestLimits)
    fallback: str | None = None
    drop_truncated: bool = False
    extra: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.algorithm = _algorithm(self.algorithm, dict(self.algorithm_kwargs or {}))
        if isinstance(self.extra, str):
            raise ConfigError(f"CommonCrawlHTMLExtractor: expected extra to be a list of names; got {self.extra!r}")
        if self.fallback not in FALLBACKS:
            raise ConfigError(
                f"CommonCrawlHTMLExtractor: expected fallback to be 'resiliparse' or None; got {self.fallback!r}"
            )
        self._reader: PageReader | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reader": None}  # it holds libraries, which stay in their process

    @property
    def is_quick(self) -> bool:
        return self._chosen.is_quick

    @property
    def keeps_time(self) -> bool:
        return True  # whichever algorithm it is, `PageReader` has a limit of seconds for a page

    def input_columns(self) -> list[str]:
        return ["url", "warc_id", "source_id", "content", *self.extra]

    def output_columns(self) -> list[str]:
        return ["url", "warc_id", "source_id", "language", "text", *self.extra]

    def check_ready(self) -> None:
        check_ready(self._chosen)

    def setup(self) -> None:
        options = PageOptions(self.limits, self.math, self.code, fallback=self.fallback is not None)
        self._reader = PageReader(self._chosen, self.stop_lists, options)

    @property
    def _chosen(self) -> HTMLExtractorAlgorithm:
        assert isinstance(self.algorithm, HTMLExtractorAlgorithm)  # noqa: S101  # since __post_init__
        return self.algorithm

    def extract(self, record: dict[str, Any]) -> dict[str, Any] | Dropped | Quarantined | None:
        """Return url, warc_id, source_id, language and text, or why there is none.

        A record may say more than its four columns: `http_status`, `http_content_type`, `identified_type` (by the
        crawler) and `truncated`.
        """
        content = record.get("content")
        unwanted = self._unwanted(record, content)
        if unwanted is not None or content is None:
            return unwanted
        if self._reader is None:
            self.setup()
        assert self._reader is not None  # noqa: S101
        data = content.encode("utf-8", "replace") if isinstance(content, str) else bytes(content)
        page = self._reader.read(data, record.get("http_content_type"))
        if isinstance(page, Dropped | Quarantined):
            return page
        kept = {name: record.get(name) for name in ("url", "warc_id", "source_id")}
        made = {"language": page.language, "text": "\n\n".join(page.paragraphs)}
        return kept | made | {name: record.get(name) for name in self.extra}

    def _unwanted(self, record: dict[str, Any], content: str | bytes | None) -> Dropped | None:
        """Why a record is left out before it is looked into."""
        if not content:
            return Dropped(EMPTY)
        status = record.get("http_status")
        if status is not None and not 200 <= int(status) <= 299:
            return Dropped(HTTP_STATUS, int(status), "200 ≤ status ≤ 299")
        if self.drop_truncated and record.get("truncated"):
            return Dropped(TRUNCATED, record["truncated"])
        if isinstance(content, str):
            return None
        types = {"identified_type": record.get("identified_type"), "content_type": record.get("http_content_type")}
        kind = kind_of(content[: 1 << 20], **types)
        return None if kind == "html" else Dropped(NOT_HTML, types["identified_type"] or types["content_type"] or kind)


def _algorithm(given: object, kwargs: dict[str, Any]) -> HTMLExtractorAlgorithm:
    who = "CommonCrawlHTMLExtractor"
    if given is None:
        warnings.warn(f"{who}: no algorithm was given, so it is jusText with its defaults", UserWarning, stacklevel=4)
        return JusTextExtractor()
    if isinstance(given, HTMLExtractorAlgorithm):
        if kwargs:
            told = f"{who}: algorithm_kwargs have no effect on an algorithm that is an object"
            warnings.warn(told, UserWarning, stacklevel=4)
        return given
    if not isinstance(given, str) or given not in ALGORITHMS:
        close = nearest(given, ALGORITHMS) if isinstance(given, str) else ""
        names = ", ".join(map(repr, ALGORITHMS))
        raise ConfigError(f"{who}: expected algorithm to be one of {names}, or an object; got {given!r}{close}")
    return ALGORITHMS[given](**kwargs)
