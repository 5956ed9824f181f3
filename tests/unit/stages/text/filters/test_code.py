"""The filters for source code follow their definitions, on programs and on what is none."""

import pytest

from gristmill.errors import ConfigError
from gristmill.stages.text.filters.heuristic.code import (
    AlphaFilter,
    GeneralCommentToCodeFilter,
    HTMLBoilerplateFilter,
    NumberOfLinesOfCodeFilter,
    PerExtensionFilter,
    PythonCommentToCodeFilter,
    TokenizerFertilityFilter,
    XMLHeaderFilter,
)
from gristmill.stages.text.filters.heuristic.code.comment_syntax import LANGUAGES, find_comments

PROGRAM = '"""Doc."""\n\n\ndef f():\n    """More."""\n    return "# no"  # yes\n'


def test_comments_and_docstrings_of_python_count():
    share = len("Doc.\nMore.") + len("# yes")

    assert PythonCommentToCodeFilter().score_document(PROGRAM) == share / len(PROGRAM)


NO_PYTHON = ["", "x = 1", "no python # here", "def f(:\n 'x'", '"\x00"', "'" + "(" * 500, "if x:\n# a"]


@pytest.mark.parametrize("text", NO_PYTHON)
def test_what_is_no_python_or_has_no_comment_scores_nothing(text):
    assert PythonCommentToCodeFilter().score_document(text) == 0.0


@pytest.mark.parametrize(
    ("language", "source", "comments"),
    [
        (
            "text/x-c",
            'int a; // one\n/* two\n3 */ char *s = "// no /* no */"; char c = \'"\'; // four',
            [" one", " two\n3 ", " four"],
        ),
        ("text/x-java", "/* open", [" open"]),
        ("application/javascript", "`// ${no}` // yes", [" yes"]),
        ("text/x-go", "s := `\\` // yes", [" yes"]),
        ("text/x-python", '\'\'\'# no\'\'\' # yes\n"""\n# no\\""""', [" yes"]),
        ("text/x-ruby", "=begin\nlong\n=end\nx # short", ["\nlong\n", " short"]),
        ("text/x-shellscript", "#!/bin/sh\necho $# 'a # no' a#b # yes", ["!/bin/sh", " yes"]),
        ("text/html", "<p><!-- one --> two <!-- three", [" one ", " three"]),
        ("text/x-rust", "fn f<'a>(x: &'a str) // yes", [" yes"]),
        ("text/x-c", '"unclosed // no\n// yes', [" yes"]),
    ],
)
def test_comments_are_found_outside_of_literals(language, source, comments):
    assert find_comments(source, language) == comments
    share = len(" ".join(comments)) / len(source)
    assert GeneralCommentToCodeFilter(language).score_document(source) == share


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("unit", ["/*", '"', "'", "`", '"""', "#", "<!--", "\\", "//", '\\"', "=begin\n"])
def test_programs_that_end_nothing_take_no_longer_than_others(language, unit):
    assert isinstance(find_comments(unit * 200_000, language), list)  # or the test times out


def test_an_unknown_language_is_refused():
    with pytest.raises(ConfigError, match=r"one of .*; got 'text/c'; did you mean 'text/x-c'\?"):
        GeneralCommentToCodeFilter("text/c")


@pytest.mark.parametrize(
    ("judge", "text", "score"),
    [
        (NumberOfLinesOfCodeFilter(), "a\nb\n", 3),
        (NumberOfLinesOfCodeFilter(), "", 1),
        (AlphaFilter(), "ab12", 0.5),
        (AlphaFilter(), "é²_1", 0.25),
        (AlphaFilter(), "", 0.0),
        (XMLHeaderFilter(), '<?xml version="1.0"?>', 1),
        (XMLHeaderFilter(10), '          <?xml version="1.0"?>', 0),
        (XMLHeaderFilter(), "", 0),
        (HTMLBoilerplateFilter(0.2, 4), "<p>a&amp;bc</p><script>if (a < b) {}</script><!-- > -->", 4 / 55),
        (HTMLBoilerplateFilter(), "<p>short</p>", 0.0),
        (HTMLBoilerplateFilter(0.2, 1), "plain", 1.0),
        (HTMLBoilerplateFilter(0.2, 1), "a < b", 1.0),
        (HTMLBoilerplateFilter(0.2, 1), "", 0.0),
        (HTMLBoilerplateFilter(0.2, 1), "x<style>", 1 / 8),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "score_document") else "",
)
def test_a_score_is_what_the_definition_says(judge, text, score):
    assert judge.score_document(text) == score


@pytest.mark.parametrize(("judge", "kept"), [(XMLHeaderFilter(), [0]), (NumberOfLinesOfCodeFilter(2, 3), [2, 3])])
def test_the_bounds_are_kept(judge, kept):
    assert [score for score in range(5) if judge.keep_document(score)] == kept


@pytest.mark.parametrize("unit", ["<", "<!--", "<script", "<script>", "&#1", "<a ", "</"])
def test_broken_markup_takes_no_longer_than_other_text(unit):
    score = HTMLBoilerplateFilter().score_document(unit * 200_000)

    assert 0.0 <= score <= 1.0  # or the test times out


TABLE = """language,extension,Include,Long_line_threshold,Alphanum_threshold,Alpha filter
python,py,1,20,0.25,
python,ipynb,0,,,
c-sharp,cs,1,,,0.5
dockerfile,,1,,,
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "code_meta.csv"
    path.write_text(TABLE)
    return str(path)


@pytest.mark.parametrize(
    ("lang", "extension", "text", "score"),
    [
        ("Python", "py", "x = 1", 1),
        ("Python", "py", "x" * 21, 0),
        ("Python", "py", "++++a", 0),
        ("Python", "py", "", 1),
        ("Python", "ipynb", "x", 0),
        ("Python", "pyx", "x", 0),
        ("C#", "cs", "ab12", 1),
        ("C#", "cs", "a123", 0),
        ("Dockerfile", None, "anything", 1),
    ],
)
def test_limits_depend_on_language_and_extension(table, lang, extension, text, score):
    judge = PerExtensionFilter(lang, extension, table)

    assert judge.score_document(text) == score
    assert judge.keep_document(score) is bool(score)


def test_long_lines_on_average_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TABLE.replace("1,20,", "1,1000,"))

    assert PerExtensionFilter("Python", "py", str(path)).score_document("x" * 101) == 0
    assert PerExtensionFilter("Python", "py", str(path)).score_document("x" * 100) == 1


def test_mistakes_in_the_table_are_named(table, tmp_path):
    with pytest.raises(ConfigError, match=r"expected lang to be in .*; got 'Pyton'; did you mean 'python'\?"):
        PerExtensionFilter("Pyton", "py", table)
    with pytest.raises(ConfigError, match="expected metadata_file to be a"):
        PerExtensionFilter("Python", "py", str(tmp_path / "none.csv"))
    (tmp_path / "bad.csv").write_text("language,extension\n")
    with pytest.raises(ConfigError, match=r"expected the columns \['Include'"):
        PerExtensionFilter("Python", "py", str(tmp_path / "bad.csv"))


def test_a_tokenizer_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match="expected path_to_tokenizer to be a SentencePiece model file; got None"):
        TokenizerFertilityFilter().check_ready()
