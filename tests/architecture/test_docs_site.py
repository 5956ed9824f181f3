"""Every page is in the menu of the documentation site, and what the menu names is there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]


def pages_of(entry):
    """The pages below an entry of the menu."""
    if isinstance(entry, str):
        return [entry]
    return [page for below in (entry.values() if isinstance(entry, dict) else entry) for page in pages_of(below)]


def menu():
    return pages_of(yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])


@pytest.mark.parametrize("folder", ["guide", "explanation", "reference", "tutorials"])
def test_every_page_is_in_the_menu_once(folder):
    found = [path for path in (REPOSITORY / "docs" / folder).glob("*") if path.suffix in (".md", ".ipynb")]
    expected = {f"{folder}/{path.stem}.md" for path in found}

    assert expected - set(menu()) == set(), "add the page to nav in mkdocs.yml"


def test_no_page_is_in_the_menu_twice():
    assert sorted(menu()) == sorted(set(menu()))


@pytest.mark.slow
def test_the_reference_is_made_and_holds_what_users_look_up(tmp_path):
    """The pages alone, without the generator of the site: names of the catalog, the command line and the doors."""
    script = "import json, sys; from docs_site.build import pages; json.dump(dict(pages()), sys.stdout)"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "tools")}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = yaml.safe_load(done.stdout) if done.stdout.startswith("{") else {}

    assert set(menu()) <= set(made)
    assert "### JsonlReader" in made["reference/stages.md"]
    assert "| `min_words` | int | `50` |" in made["reference/filters.md"]
    assert "| `gopher_short_doc` |" in made["reference/rule-sets.md"]
    assert "## gristmill dedup fuzzy" in made["reference/commands.md"]
    assert "## ScoreFilter" in made["reference/python/gristmill.stages.text.filters.md"]
    assert "| `null_text` |" in made["reference/reasons.md"]
