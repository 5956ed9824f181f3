"""Pages with formulas in every form that the web has them in, and with code."""

from html import escape
from typing import NamedTuple
from urllib.parse import quote

SENTENCES = (
    "The miller wrote the weight of the grain into a book, and at the end of the year he would add up the numbers.",
    "It is not hard to see that the sum of the parts has to be the same as the whole, with whichever of them we begin.",
    "If we now look at what is left of it when the wheel has turned once, we find that there is a simple rule for it.",
    "For all of the values that we have tried so far the two sides are the same, and there is a proof that they are.",
    "This was known to those who built the first mills, though they would not have written it down in the way we do.",
)


class Form(NamedTuple):
    """How a tool puts a formula into a page, and how it should come out."""

    name: str
    markup: str
    expected: str


def _katex(tex: str, mathml: str, *, display: bool = False) -> str:
    annotation = f'<annotation encoding="application/x-tex">{escape(tex)}</annotation>'
    inner = f"<math><semantics><mrow>{mathml}</mrow>{annotation}</semantics></math>"
    rendered = '<span class="katex-html" aria-hidden="true"><span class="mord">garbled</span></span>'
    made = f'<span class="katex"><span class="katex-mathml">{inner}</span>{rendered}</span>'
    return f'<span class="katex-display">{made}</span>' if display else made


def _wiki(tex: str, kind: str) -> str:
    shown = f"{{\\displaystyle {tex}}}"
    annotation = f'<annotation encoding="application/x-tex">{escape(shown)}</annotation>'
    math = f'<math alttext="{escape(shown)}"><semantics><mrow><mi>x</mi></mrow>{annotation}</semantics></math>'
    hidden = f'<span class="mwe-math-mathml-{kind} mwe-math-mathml-a11y" style="display: none;">{math}</span>'
    image = f'<img src="/media/math/{kind}" class="mwe-math-fallback-image-{kind}" alt="{escape(shown)}">'
    return f'<span class="mwe-math-element mwe-math-element-{kind.replace("display", "block")}">{hidden}{image}</span>'


def _mathjax_2(tex: str, *, display: bool = False) -> str:
    mathml = escape("<math><mi>x</mi></math>")
    made = f'<span class="MathJax" id="MathJax-Element-1-Frame" data-mathml="{mathml}"><nobr>garbled</nobr></span>'
    made = f'<div class="MathJax_Display">{made}</div>' if display else made
    mode = "; mode=display" if display else ""
    return f'<span class="MathJax_Preview">garbled</span>{made}<script type="math/tex{mode}">{tex}</script>'


SQUARE = "<msup><mi>x</mi><mn>2</mn></msup>"
FORMS = (
    Form("script", '<script type="math/tex">a_1 < b & c</script>', "$a_1 < b & c$"),
    Form(
        "script display",
        '<script type="math/tex; mode=display">\\int_0^1 f(x)\\,dx</script>',
        "$$\\int_0^1 f(x)\\,dx$$",
    ),
    Form("script mathml", f'<script type="math/mml"><math>{SQUARE}<mo>+</mo><mn>1</mn></math></script>', "$x^{2}+1$"),
    Form("katex", _katex("E = mc^2", "<mi>E</mi>"), "$E = mc^2$"),
    Form("katex display", _katex("\\sum_{k=1}^n k", "<mi>S</mi>", display=True), "$$\\sum_{k=1}^n k$$"),
    Form("wiki inline", _wiki("a^{2}+b^{2}", "inline"), "$a^{2}+b^{2}$"),
    Form("wiki display", _wiki("\\lim _{n\\to \\infty }a_{n}", "display"), "$$\\lim _{n\\to \\infty }a_{n}$$"),
    Form(
        "latexml",
        '<math alttext="\\frac{p}{q}" class="ltx_Math"><mfrac><mi>p</mi><mi>q</mi></mfrac></math>',
        "$\\frac{p}{q}$",
    ),
    Form(
        "latexml display", '<math alttext="\\sqrt{z}" display="block"><msqrt><mi>z</mi></msqrt></math>', "$$\\sqrt{z}$$"
    ),
    Form("mathjax 2 rendered", _mathjax_2("\\alpha + \\beta"), "$\\alpha + \\beta$"),
    Form("mathjax 2 display", _mathjax_2("\\prod_i p_i", display=True), "$$\\prod_i p_i$$"),
    Form(
        "mathjax 2 without source",
        f'<span class="MathJax" data-mathml="{escape(f"<math>{SQUARE}<mo>=</mo><mi>y</mi></math>")}">garbled</span>',
        "$x^{2}=y$",
    ),
    Form(
        "mathjax 3",
        '<mjx-container class="MathJax" jax="CHTML"><mjx-math><mjx-mi>garbled</mjx-mi></mjx-math><mjx-assistive-mml>'
        f"<math><mi>f</mi><mo>(</mo>{SQUARE}<mo>)</mo></math></mjx-assistive-mml></mjx-container>",
        "$f(x^{2})$",
    ),
    Form(
        "mathjax 3 display",
        '<mjx-container class="MathJax" display="true"><svg><g></g></svg><mjx-assistive-mml><math display="block">'
        "<msub><mi>a</mi><mi>n</mi></msub></math></mjx-assistive-mml></mjx-container>",
        "$$a_{n}$$",
    ),
    Form(
        "mathjax 4",
        '<mjx-container class="MathJax" data-latex="u \\otimes v"><mjx-math>garbled</mjx-math></mjx-container>',
        "$u \\otimes v$",
    ),
    Form("image class tex", '<img class="tex" alt="\\omega_0^2" src="/formula/17.png">', "$\\omega_0^2$"),
    Form("image class latex", '<img class="latex" alt="\\Gamma(n)" src="/formula/18.png">', "$\\Gamma(n)$"),
    Form(
        "wordpress",
        f'<img src="https://s0.wp.com/latex.php?latex={quote("x_n + y_n")}&bg=ffffff&fg=000" class="latex">',
        "$x_n + y_n$",
    ),
    Form("google", f'<img src="http://chart.apis.google.com/chart?cht=tx&chl={quote("2^{10}")}">', "$2^{10}$"),
    Form("codecogs", f'<img src="https://latex.codecogs.com/svg.latex?{quote("k!")}">', "$k!$"),
    Form("pandoc", '<span class="math inline">\\(r \\le s\\)</span>', "$r \\le s$"),
    Form("pandoc display", '<span class="math display">\\[t = \\tau\\]</span>', "$$t = \\tau$$"),
    Form("distill", "<d-math>\\hat{y}</d-math>", "$\\hat{y}$"),
    Form("zhihu", '<span class="ztext-math" data-tex="\\mathbf{w}^T">garbled</span>', "$\\mathbf{w}^T$"),
    Form("mathml alone", "<math><mfrac><mn>1</mn><mi>n</mi></mfrac></math>", "$\\frac{1}{n}$"),
    Form("mathml display", f'<math display="block"><mi>g</mi><mo>∘</mo>{SQUARE}</math>', "$$g\\circ x^{2}$$"),
    Form("text inline", "\\(m \\mid n\\)", "\\(m \\mid n\\)"),
    Form("text display", "\\[q = \\pi r\\]", "\\[q = \\pi r\\]"),
    Form("text dollars", "$$e^{i\\pi} = -1$$", "$$e^{i\\pi} = -1$$"),
    Form("text environment", "\\begin{equation} d = 3 \\end{equation}", "\\begin{equation} d = 3 \\end{equation}"),
    Form("text forum", "[tex]h > 0[/tex]", "[tex]h > 0[/tex]"),
)
CODE = (
    "def mill(grain):\n    # two spaces  here\n\tif grain:\n        return grain / 2\n\n\n    return 0",
    '<html>\n  <body class="x">&amp;</body>\n</html>',
    "SELECT weight,\n       owner\n  FROM grain\n WHERE weight > 10;",
)


def article(*pieces: str, title: str = "The rule of the wheel", between: bool = False) -> str:
    """A page with a menu, a footer and an article in which pieces of markup stand in paragraphs, or between them."""
    body = []
    for number, piece in enumerate(pieces):
        before, after = SENTENCES[number % 5], SENTENCES[(number + 2) % 5]
        told = f"which is number {number} of those that follow"
        if between:
            body.append(f"<p>{before} {after} We take one as an example, {told}:</p><div>{piece}</div>")
        else:
            body.append(f"<p>{before} Take {piece} as an example, {told}. {after}</p>")
    menu = "".join(f'<li><a href="/page/{k}">Menu {k}</a></li>' for k in range(8))
    return (
        f"<!DOCTYPE html><html lang=en><head><title>{title}</title></head><body><nav><ul>{menu}</ul></nav>"
        f"<main><article><h1>{title}</h1>{''.join(body)}</article></main><footer><a href=/c>Contact</a></footer>"
        "</body></html>"
    )


def code_blocks(codes: tuple[str, ...] = CODE) -> str:
    """Paragraphs with blocks of code between them, as several highlighters write them."""
    first, second, third = map(escape, codes)
    numbers = "\n".join(map(str, range(1, 1 + codes[2].count("\n") + 1)))
    lines = "".join(f'<span class="line">{line}</span>\n' for line in third.split("\n"))
    table = f'<tr><td class="linenos"><pre>{numbers}</pre></td><td class="code"><pre>{lines}</pre></td></tr>'
    return (
        f'<p>{SENTENCES[0]} {SENTENCES[1]}</p><div class="highlight"><pre class="language-python">{first}\n</pre></div>'
        f"<p>{SENTENCES[2]} {SENTENCES[3]}</p><pre><code class='language-html'>{second}</code></pre>"
        f'<p>{SENTENCES[4]} {SENTENCES[0]}</p><table class="highlighttable">{table}</table>'
        f"<p>{SENTENCES[1]} {SENTENCES[2]}</p>"
    )
