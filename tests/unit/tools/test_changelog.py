"""Fragments are checked by name and content, and become one section per release."""

import datetime

import pytest
from tools.changelog import find_faults, has_release, list_fragments, render_release


@pytest.fixture
def fragments(tmp_path):
    """Return a function that writes fragments and lists them as the tool does."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / name.replace("__", ".").replace("_", "-")).write_text(text, encoding="utf-8")
        return list_fragments(tmp_path)

    return write


def test_a_release_groups_its_fragments_by_kind_in_a_fixed_order(fragments):
    written = fragments(b__fixed__md="Two.\n", a__fixed__md="One,\nlong.\n", z__added__md="Three.\n")

    assert render_release("1.2.0", datetime.date(2030, 1, 2), written).splitlines() == [
        "## 1.2.0 (2030-01-02)",
        "",
        "### Added",
        "",
        "- Three.",
        "",
        "### Fixed",
        "",
        "- One,",
        "  long.",
        "- Two.",
    ]


@pytest.mark.parametrize("name", ["slug__md", "slug__improved__md", "Slug__added__md", "slug__added__txt"])
def test_a_badly_named_fragment_is_a_fault(fragments, name):
    (fault,) = find_faults(fragments(**{name: "text"}))

    assert fault.startswith("changelog.d: expected <slug>.<added|changed|fixed>.md; got ")


def test_an_empty_fragment_is_a_fault(fragments):
    assert find_faults(fragments(a_b__added__md=" \n")) == [
        "changelog.d/a-b.added.md: expected a sentence for users; got an empty file"
    ]


def test_the_readme_is_no_fragment(fragments):
    assert fragments(README__md="about") == []


def test_a_version_has_one_section(fragments):
    told = "\n" + render_release("1.2.0", datetime.date(2030, 1, 2), fragments(a__added__md="One.\n"))

    assert has_release(told, "1.2.0")
    assert not has_release(told, "1.2.1")
    assert not has_release(told, "1.2")
