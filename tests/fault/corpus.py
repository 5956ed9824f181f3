"""Input of the fault tests: many small files with documents to keep, to drop and to quarantine, and broken lines."""

import json


def make_corpus(directory, num_files, *, documents=8):
    """Write `num_files` files whose content depends on their number only."""
    directory.mkdir(parents=True)
    for number in range(num_files):
        lines = [json.dumps(document(number, row)) for row in range(documents)]
        if number % 7 == 0:
            lines.insert(3, '{"id": "broken",')
        if number % 11 == 0:
            lines.append("")
        (directory / f"part-{number:04d}.jsonl").write_text("\n".join(lines) + "\n")


def document(number, row):
    name = f"{number}-{row}"
    if row == 5:
        return {"id": name, "text": "too short"}
    if row == 6 and number % 5 == 0:
        return {"id": name, "text": "cannot be worked on"}
    if row == 7 and number % 3 == 0:
        return {"id": name, "text": None}
    return {"id": name, "text": f"the miller of {name} went to the river and came back " * 20, "n": number}
