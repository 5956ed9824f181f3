"""What seeing costs, section by section: what was measured, and the mark it is to keep.

python -m benchmarks.observation [SECTION ...]
"""

import importlib
import json
import sys

from benchmarks.record import header

SECTIONS = {  # name -> module with a `measure()`
    "history": "benchmarks.observation_history",
    "dashboard": "benchmarks.observation_dashboard",
    "inspect": "benchmarks.inspection",
    "replayed": "benchmarks.observation_replayed",
    "scrape": "benchmarks.observation_scrape",
    "report": "benchmarks.observation_report",
}


def main() -> None:
    """Run the sections named, or all."""
    print(json.dumps(header()))
    for name in sys.argv[1:] or SECTIONS:
        print(json.dumps({name: importlib.import_module(SECTIONS[name]).measure()}, indent=1), flush=True)


if __name__ == "__main__":
    main()
