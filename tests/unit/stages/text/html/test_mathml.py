"""MathML becomes the LaTeX somebody would have written."""

import pytest
from resiliparse.parse.html import HTMLTree

from gristmill.stages.text.html.mathml import mathml_to_latex

ROWS = ("<mtd><mn>1</mn></mtd><mtd><mn>0</mn></mtd>", "<mtd><mn>0</mn></mtd><mtd><mn>1</mn></mtd>")
TABLE = f"<mtable><mtr>{ROWS[0]}</mtr><mtr>{ROWS[1]}</mtr></mtable>"
SUM = "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>"


def latex(mathml: str) -> str:
    return mathml_to_latex(HTMLTree.parse(f"<math>{mathml}</math>").document.query_selector("math"))


@pytest.mark.parametrize(
    ("mathml", "expected"),
    [
        ("", ""),
        ("<mi>x</mi>", "x"),
        ("<mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup>", "E=mc^{2}"),
        ("<mfrac><mn>1</mn><mrow><mn>2</mn><mi>a</mi></mrow></mfrac>", r"\frac{1}{2a}"),
        ('<mfrac linethickness="0"><mi>n</mi><mi>k</mi></mfrac>', r"\binom{n}{k}"),
        ("<msqrt><mi>b</mi><mo>−</mo><mi>c</mi></msqrt>", r"\sqrt{b-c}"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot>", r"\sqrt[3]{x}"),
        ("<msub><mi>a</mi><mi>n</mi></msub>", "a_{n}"),
        ("<msubsup><mi>a</mi><mn>1</mn><mn>2</mn></msubsup>", "a_{1}^{2}"),
        ("<msup><mrow><mo>(</mo><mi>a</mi><mo>)</mo></mrow><mn>2</mn></msup>", "{(a)}^{2}"),
        ("<msup><mi>f</mi><mo>′</mo></msup>", "f'"),
        (SUM + "<msub><mi>x</mi><mi>i</mi></msub>", r"\sum_{i=1}^{n}x_{i}"),
        ("<munder><mi>lim</mi><mrow><mi>x</mi><mo>→</mo><mn>0</mn></mrow></munder>", r"\lim_{x\to0}"),
        ("<mover><mi>x</mi><mo>→</mo></mover>", r"\vec{x}"),
        ("<mover><mrow><mi>A</mi><mi>B</mi></mrow><mo>¯</mo></mover>", r"\overline{AB}"),
        ("<mover><mi>x</mi><mo>^</mo></mover>", r"\hat{x}"),
        ("<munder><mi>x</mi><mo>_</mo></munder>", r"\underline{x}"),
        ("<mover><mo>=</mo><mtext>def</mtext></mover>", r"\overset{\text{def}}{=}"),
        ("<munder><mi>A</mi><mi>k</mi></munder>", r"\underset{k}{A}"),
        ("<munderover><mi>A</mi><mi>k</mi><mi>l</mi></munderover>", r"\underset{k}{\overset{l}{A}}"),
        ("<mmultiscripts><mi>C</mi><mn>6</mn><none/><mprescripts/><none/><mn>14</mn></mmultiscripts>", "{}^{14}C_{6}"),
        (f"<mo>(</mo>{TABLE}<mo>)</mo>", r"(\begin{matrix}1 & 0 \\ 0 & 1\end{matrix})"),
        ("<mfenced><mi>a</mi><mi>b</mi></mfenced>", "(a,b)"),
        ('<mfenced open="[" close="["separators=";"><mi>a</mi><mi>b</mi></mfenced>', "[a;b["),
        ('<menclose notation="box"><mi>a</mi></menclose>', r"\boxed{a}"),
        ("<mi>α</mi><mi>x</mi>", r"\alpha x"),
        ("<mi>sin</mi><mo>&#x2061;</mo><mi>θ</mi>", r"\sin\theta"),
        ("<mi>sin</mi><mi>x</mi>", r"\sin x"),
        ("<mi>abc</mi>", r"\mathrm{abc}"),
        ('<mi mathvariant="bold">v</mi>', r"\mathbf{v}"),
        ("<mi>𝐱</mi><mo>∈</mo><mi>ℝ</mi>", r"\mathbf{x}\in\mathbb{R}"),
        ("<mtext>if 50% &amp; more</mtext>", r"\text{if 50\% \& more}"),
        ("<mi>a</mi><mo>&lt;</mo><mi>b</mi>", "a<b"),
        ("<mo>{</mo><mi>x</mi><mo>}</mo>", r"\{x\}"),
        ("<semantics><mi>y</mi><annotation-xml><mi>z</mi></annotation-xml></semantics>", "y"),
        ("<mstyle><mpadded><mi>y</mi></mpadded></mstyle>", "y"),
        ("<mphantom><mi>y</mi></mphantom><mi>z</mi>", "z"),
        ("<unknown><mi>y</mi></unknown>", "y"),
        ("<mi>y</mi><mspace width='2em'/><mi>z</mi>", r"y\quad z"),
        ("<mfrac><mn>1</mn></mfrac>", r"\frac{1}{}"),
        ("<msup><mi>x</mi></msup><msup></msup>", "x{}"),
    ],
)
def test_a_formula(mathml, expected):
    assert latex(mathml) == expected


def test_what_is_nested_without_end_is_taken_as_text():
    assert latex("<msqrt>" * 500 + "<mi>x</mi>").count("x") == 1
