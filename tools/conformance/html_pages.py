"""Write what the reference's extractors make of our pages: tests/parity/html_extractors.json.

Run it with the Python of an environment that has nemo-curator and the versions of constraints.txt:

    benchmarks/out/venvs/nemo-curator/bin/python tools/conformance/html_pages.py
"""

import importlib.metadata
import importlib.util
import json
from pathlib import Path

from nemo_curator.stages.text.download import html_extractors as reference  # type: ignore[import-not-found]

PARITY = Path(__file__).parents[2] / "tests" / "parity"
LIBRARIES = ("justext", "lxml", "lxml_html_clean", "resiliparse", "trafilatura")


def main() -> None:
    spec = importlib.util.spec_from_file_location("html_pages", PARITY / "html_pages.py")
    assert spec is not None
    assert spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    results: dict[str, dict[str, list[str] | None]] = {}
    for name, (kind, options) in pages.EXTRACTORS.items():
        # A new one for each page, and trafilatura's memory emptied: its results depend on the pages before.
        results[name] = {}
        for page, (language, html) in pages.PAGES.items():
            from trafilatura.deduplication import LRU_TEST

            LRU_TEST.clear()
            extractor = getattr(reference, kind)(**options)
            results[name][page] = extractor.extract_text(html, pages.STOP_WORDS[language], language)
    versions = {library: importlib.metadata.version(library) for library in ("nemo-curator", *LIBRARIES)}
    written = json.dumps({"versions": versions, "results": results}, ensure_ascii=False, indent=1, sort_keys=True)
    (PARITY / "html_extractors.json").write_text(f"{written}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
