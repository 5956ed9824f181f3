"""`Report`: a run, or several of a workflow, as one HTML file without script or network, and the same as JSON.

Whatever is shown is in `Report`; the page adds drawings and no numbers. Content of documents reaches the page only
through `markup.tag`, and the page's own policy forbids scripts, images, fonts and requests.
"""

import base64
import hashlib
import html
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from gristmill.dashboard.duplicates import Duplicates, duplicates_section
from gristmill.dashboard.markup import Child, Html, joined, table, tag, text
from gristmill.dashboard.report_documents import documents_sections
from gristmill.dashboard.report_time import setting_section, time_section
from gristmill.dashboard.run_data import FORMAT, RunData
from gristmill.dashboard.verdict import Verdict, verdict_on
from gristmill.metrics.amounts import count, duration, share

STYLE = Path(__file__).with_name("report.css")
SCHEMA = Path(__file__).with_name("report.schema.json")
SHORTENED_FROM = 1_000_000
STATES = {"finished": "good", "killed": "bad", "failed": "bad", "stopped": "bad"}
_CONTENTS = (
    ("funnel", "Where documents went"),
    ("rules", "Rules"),
    ("slices", "Sources and languages"),
    ("quarantine", "Quarantine"),
    ("time", "Time"),
    ("setting", "What was run"),
)


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """One run and the verdict on it."""

    verdict: Verdict
    run: RunData


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `gristmill report` says. A workflow has several runs, in the order they were started."""

    format: int
    runs: tuple[RunReport, ...]
    duplicates: tuple[Duplicates, ...] = ()  # of deduplications, in their order

    @classmethod
    def of(cls, runs: Sequence[RunData], duplicates: Sequence[Duplicates] = ()) -> "Report":
        made = tuple(RunReport(verdict=verdict_on(run), run=run) for run in runs)
        return cls(format=FORMAT, runs=made, duplicates=tuple(duplicates))

    def to_json(self) -> dict[str, object]:
        """Return it as one JSON object, of which `report.schema.json` says the form."""
        found: dict[str, object] = msgspec.to_builtins(self)
        return found

    def to_html(self) -> str:
        """Return the page."""
        style = STYLE.read_text(encoding="utf-8")
        # The policy names the style by its hash: a style that a document smuggles in has another.
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        title = " · ".join(dict.fromkeys(part.run.name or "run" for part in self.runs))
        head = joined(
            tag("meta", charset="utf-8"),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("title", text(f"{title}: report", 200)),
            Html(f"<style>{style}</style>"),
        )
        body = joined(
            *self._body(), tag("footer", "Made by gristmill report. Nothing in this file runs or is fetched.")
        )
        return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'

    def _body(self) -> Iterator[Html]:
        if len(self.runs) == 1:
            yield _run_page(self.runs[0], "")
            yield from self._duplicates()
            return
        yield tag("h1", f"A workflow of {len(self.runs)} runs")
        rows: list[list[Child]] = []
        for number, part in enumerate(self.runs, 1):
            run, books = part.run, part.run.documents.books
            name = tag("a", text(run.name or "run", 200), href=f"#r{number}")
            rows.append([name, _state(run), f"{books.read:,}", f"{books.written:,}", duration(run.time.wall_s)])
        yield table(["run", "state", "read", "kept", "time"], rows, numbers=2)
        yield from self._duplicates()
        for number, part in enumerate(self.runs, 1):
            yield _run_page(part, f"r{number}")

    def _duplicates(self) -> Iterator[Html]:
        for number, found in enumerate(self.duplicates):
            of = f" of {found.stage}" if found.stage else ""
            name = f"duplicates-{number}" if number else "duplicates"
            yield tag("section", tag("h2", text(f"Duplicates{of}", 200)), duplicates_section(found), id=name)


def schema() -> dict[str, object]:
    """Return the JSON schema of the report, as `report.schema.json` has it."""
    made = msgspec.json.schema(Report)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "gristmill report", **made}


def _run_page(part: RunReport, prefix: str) -> Html:
    run = part.run
    sections = [*documents_sections(run, prefix), time_section(run), setting_section(run)]
    present = [(name, title) for name, title in _CONTENTS if any(key == name for key, _ in sections)]
    links = (tag("a", title, href=f"#{prefix}{name}") for name, title in present)
    titles = dict(_CONTENTS)
    return tag(
        "article",
        tag("h1", tag("bdi", text(run.name or "run", 300)), id=prefix or None),
        tag("p", _state(run), " ", tag("span", text(run.run_dir), class_="place")),
        _verdict(part.verdict),
        _tiles(run),
        _warnings(part.verdict),
        tag("nav", *links, aria_label="Contents"),
        *(tag("section", tag("h2", titles[name]), content, id=f"{prefix}{name}") for name, content in sections),
    )


def _state(run: RunData) -> Html:
    return tag("span", run.state, class_=f"state {STATES.get(run.state, 'busy')}")


def _verdict(verdict: Verdict) -> Html:
    documents = tag("p", " ".join(verdict.documents))
    return tag("div", documents, tag("p", " ".join(verdict.time), class_="soft"), class_="verdict")


def _warnings(verdict: Verdict) -> Html | None:
    if not verdict.warnings:
        return None
    said = tag("ul", *(tag("li", text(warning, 500)) for warning in verdict.warnings))
    return tag("div", tag("strong", "Worth a look"), said, class_="warnings", role="note")


def _tiles(run: RunData) -> Html:
    books = run.documents.books
    total = books.read + books.created
    tiles = [
        (_short(books.read), "documents read", ""),
        (_short(books.created), "made from them", "") if books.created else None,
        (_short(books.written), f"kept ({share(books.written, total)})", "good"),
        (_short(books.dropped), f"dropped ({share(books.dropped, total)})", ""),
        (_short(books.quarantined), "in quarantine", "bad" if books.quarantined else ""),
        (duration(run.time.wall_s), "by the clock", ""),
        (f"{run.time.efficiency.of_bound:.0%}", "of the optimum", "") if run.time.efficiency else None,
    ]
    made = (tag("li", tag("b", t[0], class_=t[2] or None), tag("span", t[1])) for t in tiles if t is not None)
    return tag("ul", *made, class_="tiles")


def _short(number: int) -> str:
    """A number in full if it fits a tile; further down, every number is in full."""
    return f"{number:,}" if number < SHORTENED_FROM else count(number)
