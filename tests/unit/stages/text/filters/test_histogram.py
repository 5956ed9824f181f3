"""HistogramFilter keeps texts made of a language's characters, from files that are there."""

import pytest

from gristmill.errors import ConfigError
from gristmill.stages.text.filters.histogram import HistogramFilter


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "xx").write_text("e 500\n- 90\na\t300\n \n]\nz 1\n", encoding="utf-8")
    return str(tmp_path)


CASES = [("aaee-", 1), ("aaaaz", 0), ("aaaaaz", 1), ("a e a", 1), ("", 0), ("  a  ", 0)]


@pytest.mark.parametrize(("text", "score"), CASES)
def test_more_than_the_threshold_must_be_known(directory, text, score):
    judge = HistogramFilter("xx", 0.8, directory)

    assert judge.score_document(text) == score
    assert judge.keep_document(score) is bool(score)


def test_published_histograms_are_found_where_they_are_unpacked(tmp_path):
    place = tmp_path / "histograms" / "checkpoint" / "edunov" / "cc60_multilingual" / "clean_hists"
    place.mkdir(parents=True)
    (place / "de").write_text("ä 1\n")

    assert HistogramFilter("de", cache_dir=str(tmp_path)).score_document("ääää") == 1


def test_a_language_without_a_histogram_is_named(directory):
    with pytest.raises(ConfigError, match="expected cache_dir to hold a histogram of 'en'; there is neither"):
        HistogramFilter("en", cache_dir=directory)


def test_a_file_without_characters_is_refused(directory, tmp_path):
    (tmp_path / "yy").write_text("]\na\n")
    with pytest.raises(ConfigError, match="expected characters in"):
        HistogramFilter("yy", cache_dir=directory)
