"""TeX is put together in the order TeX reads it; macros, comments and verbatim as TeX has them; limits hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download.arxiv.tex_assembly import assemble
from gristmill.stages.text.download.arxiv.tex_macros import fill_in, read_arguments, read_def, read_newcommand
from gristmill.stages.text.download.arxiv.tex_project import TexProject, decode


def paper(body, preamble="", limits=None, **others):
    root = f"\\documentclass{{article}}\n{preamble}\n\\begin{{document}}\n{body}\n\\end{{document}}\nbehind"
    texts = {"main.tex": root} | {f"{name.replace('__', '/')}.tex": text for name, text in others.items()}
    return assemble(TexProject(texts), limits)


def text(body, preamble="", **others):
    return paper(body, preamble, **others).text


CASES = {
    # Comments
    "a % b\nc": "a c",
    "a% b\n   c": "ac",
    "a % b\n\nc": "a\n\nc",
    "% alone\na": "a",
    "a\n% alone\n\nb": "a\n\nb",
    "50\\% of \\\\% comment\nx": r"50\% of \\x",
    "a\\begin{comment}\nb\n\\end{comment}c": "ac",
    r"a\iffalse b \ifx c \fi d\fi e": "a e",
    r"a\iffalse b": r"a\iffalse b",
    r"$a \iff b$": r"$a \iff b$",
    # Verbatim
    r"\verb|a % b| c": r"\verb|a % b| c",
    "\\begin{verbatim}\n % a\n\n\n\n b\n\\end{verbatim}": "\\begin{verbatim}\n % a\n\n\n\n b\n\\end{verbatim}",
    "\\begin{lstlisting}[a=C]\n%d\n\\end{lstlisting} x": "\\begin{lstlisting}[a=C]\n%d\n\\end{lstlisting} x",
    r"\url{http://a.b/%20c} d": r"\url{http://a.b/%20c} d",
    "\\href{http://a.b/%20c}{d % e\n}": r"\href{http://a.b/%20c}{d }",
    # What is left out
    r"a \bibliography{x} b": "a  b",
    "a\n\\begin{thebibliography}{9}\n\\bibitem{x} y\n\\end{thebibliography}\nb": "a\n\nb",
    r"\author[x]{A \thanks{B}}\date{today}\maketitle a": "a",
    "a\n\\appendix\n\\section{B}\nc": "a\n\\appendix\n\\section{B}\nc",
    # White space
    "a  \n\n\n\nb": "a\n\nb",
}


@pytest.mark.parametrize(("body", "expected"), CASES.items())
def test_the_body_becomes(body, expected):
    assert text(body) == expected


MACROS = {
    (r"\newcommand{\R}{\mathbb{R}}", r"$\R^n$ and \R{}x \Rx"): r"$\mathbb{R}^n$ and \mathbb{R}x \Rx",
    (r"\newcommand\al{\alpha}", r"$\al x$ $\al{}x$ $\al1$"): r"$\alpha x$ $\alpha{}x$ $\alpha1$",
    (r"\newcommand{\n}[1]{\|#1\|}", r"$\n{a}$ $\n a$ $\n\alpha$"): r"$\|a\|$ $\|a\|$ $\|\alpha\|$",
    (r"\newcommand{\ip}[2][x]{<#1,#2>}", r"\ip{y} \ip[z]{y}"): "<x,y> <z,y>",
    (r"\newcommand{\al}[1]{\alpha#1}", r"\al{x} \al{1}"): r"\alpha x \alpha1",
    (r"\def\p(#1,#2){[#1;#2]}", r"\p(a,{b,c}) \p( d , e )"): "[a;{b,c}] [d;e]",
    (r"\def\v#1{\vec{#1}}", r"\v x \v{yz}"): r"\vec{x} \vec{yz}",
    (r"\def\be{\begin{equation}}\def\ee{\end{equation}}", r"\be x \ee"): r"\begin{equation} x \end{equation}",
    (r"\DeclareMathOperator{\am}{arg\,min}", r"\am_x"): r"\operatorname{arg\,min}_x",
    (r"\DeclareMathOperator*{\am}{arg\,min}", r"\am_x"): r"\operatorname*{arg\,min}_x",
    (r"\newcommand{\a}{A}\renewcommand{\a}{B}", r"\a"): "B",
    (r"\newcommand{\a}{A}\providecommand{\a}{B}\providecommand{\c}{C}", r"\a\c"): "AC",
    (r"\newcommand{\a}[1]{(#1)}\let\b=\a \let\c\b", r"\b{x} \c{y}"): "(x) (y)",
    (r"\let\eps\varepsilon", r"$\eps x$"): r"$\varepsilon x$",
    (r"\newcommand{\a}{\b{x}}\newcommand{\b}[1]{<#1>}", r"\a"): "<x>",
    (r"\newcommand{\v}{\vv}\newcommand{\vv}[1]{<#1>}", r"\v{x}"): "<x>",
    (r"\renewcommand{\vec}[1]{\mathbf{\vec{#1}}}", r"\vec{x}"): r"\mathbf{\vec{x}}",
    (r"\newcommand{\a}{\b}\newcommand{\b}{\a}", r"\a"): r"\a",
    (r"\newcommand{\eg}{e.g.\xspace}", r"\eg this, \eg{} that"): "e.g. this, e.g. that",
    ("\\newcommand{\\a}{x % no\n y}", r"\a"): "x y",
    (r"\newcommand{\s}{\@startsection{x}}", r"\s{A}"): r"\s{A}",
    (r"\newcommand{\c}{\ifx a b\else c\fi}", r"\c"): r"\c",
    (r"\newcommand{\n}[1]{\|#1\|}", r"\n"): r"\n",
    (r"\def\broken#1", r"a"): "a",
    (r"\newcommand{\x}[12]{y}\newcommand{\}{}", r"\x"): r"\x",
}


@pytest.mark.parametrize(("preamble", "body"), MACROS)
def test_macros_become_what_they_stand_for(preamble, body):
    assert text(body, preamble) == MACROS[preamble, body]


def test_files_stand_where_they_are_read():
    found = text(
        r"a \input{one} b \input two.tex c \include{sec/three} d \input{nowhere} e",
        one="[1 \\input{sec/four}]",
        two="[2]\\endinput never",
        sec__three="[3 \\input{four}]",
        sec__four="[4]",
    )
    assert found == "a [1 [4]] b [2] c [3 [4]] d  e"


def test_a_file_may_be_read_from_a_directory_that_is_named():
    assert text(r"\import{sec/}{one}", sec__one="[1]") == "[1]"


def test_a_file_that_could_stand_alone_gives_its_document_only():
    other = "\\documentclass[main]{subfiles}\nnot this\n\\begin{document}\n[sub]\n\\end{document}\nnor this"
    assert text(r"a \subfile{other} b \input{other} c", other=other).split() == ["a", "[sub]", "b", "[sub]", "c"]


def test_what_is_commented_or_verbatim_is_not_read():
    assert text("% \\input{one}\n\\verb|\\input{one}|", one="[1]") == r"\verb|\input{one}|"


def test_a_file_that_reads_itself_is_read_once():
    assert text(r"\input{one}", one=r"[1 \input{one} \input{main}]") == "[1  ]"


def test_title_and_abstract_are_found_wherever_they_are():
    found = paper(
        "\\begin{abstract} We % x\n study \\R. \\end{abstract} Text",
        "\\newcommand{\\R}{\\mathbb{R}}\n\\title[short]{On $\\R$\\thanks{money} \\\\ and % x\n more}",
    )
    assert (found.title, found.abstract) == (r"On $\mathbb{R}$ and more", r"We study \mathbb{R}.")
    assert found.text.startswith("\\title{On $\\mathbb{R}$ and more}\n\n\\begin{abstract} We study")
    assert paper(r"\title{T}\abstract{A} b").abstract == "A"


def test_macros_of_packages_that_come_with_the_paper_are_known():
    texts = {"main.tex": "\\documentclass{a}\\usepackage[x]{amsmath,my}\\begin{document}\\q{a}\\end{document}"}
    project = TexProject(texts, {"my.sty": "% x\n\\ProvidesPackage{my}\n\\newcommand{\\q}[1]{<#1>}"})
    assert assemble(project).text == "<a>"


@pytest.mark.parametrize(
    ("texts", "styles", "roots"),
    [
        ({"a.tex": "x", "b.tex": r"\documentclass{x}\begin{document}"}, {}, ["b.tex"]),
        (
            {"a.tex": r"% \documentclass{x}\begin{document}", "b.tex": r"\documentstyle{x}\begin{document}"},
            {},
            ["b.tex"],
        ),
        (
            {"sup.tex": r"\documentclass{x}\begin{document}", "main.tex": r"\documentclass{x}\begin{document}y"},
            {},
            ["main.tex", "sup.tex"],
        ),
        (
            {
                "sub.tex": r"\documentclass{x}\begin{document}",
                "z.tex": r"\documentclass{x}\begin{document}\subfile{sub}",
            },
            {},
            ["z.tex"],
        ),
        ({"a.tex": "plain", "b.tex": r"plain \input a \bye"}, {}, ["b.tex"]),
        ({"a.tex": "short", "b.tex": "a longer fragment"}, {}, ["b.tex"]),
        (
            {"a.tex": r"\documentclass{x}\begin{document}", "b.tex": "x"},
            {"00README.XXX": "b.tex toplevelfile\nc.tex ignore"},
            ["b.tex", "a.tex"],
        ),
        (
            {"a.tex": "x", "b.tex": "y"},
            {"00README.json": '{"sources": [{"usage": "toplevel", "filename": "a.tex"}]}'},
            ["a.tex"],
        ),
        ({"a.tex": "x"}, {"00README.json": "[broken"}, ["a.tex"]),
        ({}, {}, []),
    ],
)
def test_the_root_is_the_file_that_is_a_document(texts, styles, roots):
    assert TexProject(texts, styles).roots() == roots


def test_without_a_root_there_is_no_paper():
    assert assemble(TexProject({})) is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("é".encode(), "é"),
        (b"\xef\xbb\xbfx", "x"),
        ("é".encode("latin-1"), "é"),
        ("\\usepackage[latin2]{inputenc} ł".encode("iso8859-2"), "\\usepackage[latin2]{inputenc} ł"),
        ("\\usepackage[koi8-r]{inputenc} ж".encode("koi8-r"), "\\usepackage[koi8-r]{inputenc} ж"),
        (b"\\usepackage[utf8]{inputenc} \xe9", "\\usepackage[utf8]{inputenc} é"),
        (b"a\r\nb\rc\0", "a\nb\nc\ufffd"),
    ],
)
def test_bytes_are_read_as_utf8_or_as_the_file_says(content, expected):
    assert decode(content) == expected


def test_macros_that_grow_without_end_are_stopped_and_the_text_is_kept():
    doubling = "".join(f"\\newcommand{{\\x{chr(98 + k)}}}{{\\x{chr(97 + k)}\\x{chr(97 + k)}}}" for k in range(24))
    found = paper(r"before \xy after", r"\newcommand{\xa}{" + "lol" * 20 + "}" + doubling)
    assert found.limits == ["max_growth"]
    assert found.text.split()[0] == "before"
    assert found.text.split()[-1] == "after"


def test_expansions_and_depth_have_limits():
    limits = IngestLimits(max_expansions=3, max_input_depth=2)
    found = paper(r"\a\a\a\a \input{one}", r"\newcommand{\a}{A}", limits, one=r"[1 \input{two}]", two="[2]")
    assert found.text == r"AAA\a [1 ]"
    assert found.limits == ["max_expansions", "max_input_depth"]


@pytest.mark.parametrize(
    "piece", ["\\title{", "\\abstract{", "{", "\\newcommand{\\a}{", "\\iffalse ", "\\begin{abstract}"]
)
def test_what_is_nested_without_end_ends(piece):
    assert paper(piece * 1000 + "x").text.endswith("x")


FRAGMENTS = r"""
\newcommand{\a}[1]{(#1)} \def\b#1.{<#1>} \let\c\a \a{x} \a \b y. \c{z} { } [ ] % \% \\ \verb|x| \input{one} \title{T}
\begin{verbatim} \end{verbatim} \begin{abstract} \end{abstract} \begin{comment} \end{comment} \iffalse \fi # ## \ $x$
\bibliography{x} \url{x} \newcommand \def \let \end{document} \xspace \documentclass{x}
"""
fragments = st.sampled_from([*FRAGMENTS.split(), "\n", "\n\n", " "])


@given(st.lists(fragments, max_size=40).map("".join), st.lists(fragments, max_size=10).map("".join))
def test_anything_is_assembled(body, other):
    paper(body, one=other)


@given(st.text(alphabet="abc {}\n,.é", max_size=60))
def test_text_without_markup_is_kept_word_for_word(words):
    assert text(words).split() == words.split()


arguments = st.lists(st.text("abc+", min_size=1, max_size=4), min_size=1, max_size=9)


@given(arguments)
def test_arguments_are_put_where_their_numbers_are(arguments):
    body = "-".join(f"#{k + 1}" for k in reversed(range(len(arguments))))
    call = "".join(f"{{{each}}}" for each in arguments)
    for definition in (
        read_newcommand(f"{{\\x}}[{len(arguments)}]{{{body}}}", 0),
        read_def(f"\\x{''.join(f'#{k + 1}' for k in range(len(arguments)))}{{{body}}}", 0),
    ):
        found, end = read_arguments(definition.macro, call, 0)
        assert (found, end) == (arguments, len(call))
        assert fill_in(definition.macro, found) == "-".join(reversed(arguments))
