"""What seeing costs, section by section: what was measured, and the mark it is to keep.

python -m benchmarks.observation [--only] [SECTION ...]
"""

import importlib
import json
import sys

from benchmarks.record import header

SECTIONS = {  # name -> module with a `measure()`
    "history": "benchmarks.observation_history",
    "cost": "benchmarks.observation_cost",
    "dashboard": "benchmarks.observation_dashboard",
    "inspect": "benchmarks.inspection",
    "replayed": "benchmarks.observation_replayed",
    "scrape": "benchmarks.observation_scrape",
    "report": "benchmarks.observation_report",
}


def main() -> None:
    """Run the sections named, or all."""
    print(json.dumps(header()))
    for name in [word for word in sys.argv[1:] if word != "--only"] or SECTIONS:
        print(json.dumps({name: importlib.import_module(SECTIONS[name]).measure()}, indent=1), flush=True)


if __name__ == "__main__":
    main()
