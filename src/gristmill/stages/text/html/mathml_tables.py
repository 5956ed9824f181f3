"""What characters of MathML are called in LaTeX. Data only."""

_GREEK = """
alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho varsigma sigma tau upsilon
varphi chi psi omega
""".split()  # from U+03B1 on, in Unicode's order
_LATIN_FOR_GREEK = {"omicron": "o"}  # TeX has no command for what looks like a Latin letter
_CAPITALS = {
    "Γ": r"\Gamma", "Δ": r"\Delta", "Θ": r"\Theta", "Λ": r"\Lambda", "Ξ": r"\Xi", "Π": r"\Pi", "Σ": r"\Sigma",
    "Υ": r"\Upsilon", "Φ": r"\Phi", "Ψ": r"\Psi", "Ω": r"\Omega",
}  # fmt: skip
_VARIANTS = {
    "ϵ": r"\epsilon", "ε": r"\varepsilon", "ϑ": r"\vartheta", "ϕ": r"\phi", "φ": r"\varphi", "ϖ": r"\varpi",
    "ϱ": r"\varrho", "ϰ": r"\varkappa",
}  # fmt: skip
_LETTERS = {
    "ℓ": r"\ell", "ℏ": r"\hbar", "ħ": r"\hbar", "ı": r"\imath", "ȷ": r"\jmath", "℘": r"\wp", "ℜ": r"\Re", "ℑ": r"\Im",
    "ℵ": r"\aleph", "ℶ": r"\beth", "ⅆ": "d", "ⅇ": "e", "ⅈ": "i", "∂": r"\partial", "∇": r"\nabla", "∞": r"\infty",
    "∅": r"\emptyset", "⌀": r"\varnothing", "∀": r"\forall", "∃": r"\exists", "∄": r"\nexists", "⊤": r"\top",
    "⊥": r"\bot", "∠": r"\angle", "△": r"\triangle", "□": r"\square", "◊": r"\lozenge", "♯": r"\sharp", "♭": r"\flat",
    "†": r"\dagger", "‡": r"\ddagger", "°": r"^{\circ}", "′": "'", "″": "''", "‴": "'''", "…": r"\ldots",
    "⋯": r"\cdots", "⋮": r"\vdots", "⋱": r"\ddots",
}  # fmt: skip
_LARGE = {
    "∑": r"\sum", "∏": r"\prod", "∐": r"\coprod", "∫": r"\int", "∬": r"\iint", "∭": r"\iiint", "∮": r"\oint",
    "⋂": r"\bigcap", "⋃": r"\bigcup", "⋀": r"\bigwedge", "⋁": r"\bigvee", "⨁": r"\bigoplus", "⨂": r"\bigotimes",
    "⨀": r"\bigodot", "⨆": r"\bigsqcup",
}  # fmt: skip
_OPERATORS = {
    "−": "-", "±": r"\pm", "∓": r"\mp", "×": r"\times", "÷": r"\div", "⋅": r"\cdot", "·": r"\cdot", "∗": "*",
    "⋆": r"\star", "∘": r"\circ", "∙": r"\bullet", "•": r"\bullet", "⊕": r"\oplus", "⊖": r"\ominus", "⊗": r"\otimes",
    "⊘": r"\oslash", "⊙": r"\odot", "∩": r"\cap", "∪": r"\cup", "⊎": r"\uplus", "⊓": r"\sqcap", "⊔": r"\sqcup",
    "∧": r"\wedge", "∨": r"\vee", "¬": r"\neg", "∖": r"\setminus", "≀": r"\wr", "⨯": r"\times", "∕": "/", "⁄": "/",
    "√": r"\surd", "∣": r"\mid", "∤": r"\nmid", "∥": r"\parallel", "‖": r"\|", "∦": r"\nparallel",
}  # fmt: skip
_RELATIONS = {
    "≤": r"\le", "≥": r"\ge", "⩽": r"\leqslant", "⩾": r"\geqslant", "≠": r"\ne", "≡": r"\equiv", "≢": r"\not\equiv",
    "≈": r"\approx", "≉": r"\not\approx", "≅": r"\cong", "∼": r"\sim", "≁": r"\nsim", "≃": r"\simeq", "≍": r"\asymp",
    "≐": r"\doteq", "≔": ":=", "≜": r"\triangleq", "∝": r"\propto", "≪": r"\ll", "≫": r"\gg", "≺": r"\prec",
    "≻": r"\succ", "⪯": r"\preceq", "⪰": r"\succeq", "∈": r"\in", "∉": r"\notin", "∋": r"\ni", "⊂": r"\subset",
    "⊃": r"\supset", "⊆": r"\subseteq", "⊇": r"\supseteq", "⊄": r"\not\subset", "⊊": r"\subsetneq", "⊢": r"\vdash",
    "⊣": r"\dashv", "⊨": r"\models", "⊲": r"\triangleleft", "⊳": r"\triangleright", "⋈": r"\bowtie", "⟂": r"\perp",
}  # fmt: skip
_ARROWS = {
    "→": r"\to", "←": r"\leftarrow", "↔": r"\leftrightarrow", "⇒": r"\Rightarrow", "⇐": r"\Leftarrow",
    "⇔": r"\Leftrightarrow", "↦": r"\mapsto", "↑": r"\uparrow", "↓": r"\downarrow", "⇑": r"\Uparrow",
    "⇓": r"\Downarrow", "⟶": r"\longrightarrow", "⟵": r"\longleftarrow", "⟹": r"\Longrightarrow",
    "⟸": r"\Longleftarrow", "⟺": r"\iff", "⟷": r"\longleftrightarrow", "⟼": r"\longmapsto",
    "↪": r"\hookrightarrow", "↩": r"\hookleftarrow", "↠": r"\twoheadrightarrow", "⇀": r"\rightharpoonup",
    "⇌": r"\rightleftharpoons", "↗": r"\nearrow", "↘": r"\searrow",
}  # fmt: skip
_BRACKETS = {
    "{": r"\{", "}": r"\}", "⟨": r"\langle", "⟩": r"\rangle", "〈": r"\langle", "〉": r"\rangle", "⌈": r"\lceil",
    "⌉": r"\rceil", "⌊": r"\lfloor", "⌋": r"\rfloor", "⟦": r"\llbracket", "⟧": r"\rrbracket",
}  # fmt: skip
_ESCAPED = {"%": r"\%", "#": r"\#", "&": r"\&", "$": r"\$", "_": r"\_", "\\": r"\backslash", "~": r"\sim"}
_NOTHING = dict.fromkeys("\u2061\u2062\u2063\u2064\u200b\u200c\u200d\ufeff\ufe00\ufe0e", "")  # invisible operators
_SPACES = {"\xa0": "~", "\u2003": r"\quad", "\u2002": r"\enspace", "\u2009": r"\,", "\u2005": r"\:", "\u200a": r"\,"}

COMMANDS: dict[str, str] = {
    chr(0x3B1 + place): _LATIN_FOR_GREEK.get(name, f"\\{name}") for place, name in enumerate(_GREEK)
}
for _table in (
    _CAPITALS, _VARIANTS, _LETTERS, _LARGE, _OPERATORS, _RELATIONS, _ARROWS, _BRACKETS, _ESCAPED, _NOTHING, _SPACES,
):  # fmt: skip
    COMMANDS |= _table

TAKES_LIMITS = {*_LARGE.values(), r"\lim", r"\max", r"\min", r"\sup", r"\inf", r"\limsup", r"\liminf", r"\det", r"\gcd"}

FUNCTIONS = frozenset(
    """
    arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln log max min
    Pr sec sin sinh sup tan tanh
    """.split()
)

# Above and below a base; the second is for a base of several characters.
ACCENTS = {
    "^": (r"\hat", r"\widehat"), "ˆ": (r"\hat", r"\widehat"), "~": (r"\tilde", r"\widetilde"),
    "˜": (r"\tilde", r"\widetilde"), "∼": (r"\tilde", r"\widetilde"), "¯": (r"\bar", r"\overline"),
    "‾": (r"\bar", r"\overline"), "ˉ": (r"\bar", r"\overline"), "―": (r"\bar", r"\overline"),
    "_": (r"\bar", r"\overline"), "→": (r"\vec", r"\overrightarrow"), "⃗": (r"\vec", r"\overrightarrow"),
    "⇀": (r"\vec", r"\overrightarrow"), "←": (r"\overleftarrow", r"\overleftarrow"), "˙": (r"\dot", r"\dot"),
    ".": (r"\dot", r"\dot"), "¨": (r"\ddot", r"\ddot"), "ˇ": (r"\check", r"\check"), "˘": (r"\breve", r"\breve"),
    "´": (r"\acute", r"\acute"), "`": (r"\grave", r"\grave"), "˚": (r"\mathring", r"\mathring"),
    "⏞": (r"\overbrace", r"\overbrace"), "︷": (r"\overbrace", r"\overbrace"),
}  # fmt: skip
UNDER_ACCENTS = {
    "_": r"\underline", "‾": r"\underline", "¯": r"\underline", "―": r"\underline", "⏟": r"\underbrace",
    "︸": r"\underbrace",
}  # fmt: skip

# The names of `mathvariant`, and the words Unicode has for the same in the names of its mathematical letters.
VARIANTS = {
    "bold": r"\mathbf", "double-struck": r"\mathbb", "script": r"\mathcal", "bold-script": r"\mathcal",
    "fraktur": r"\mathfrak", "sans-serif": r"\mathsf", "monospace": r"\mathtt", "bold-italic": r"\boldsymbol",
}  # fmt: skip
UNICODE_STYLES = (
    ("DOUBLE-STRUCK", r"\mathbb"), ("FRAKTUR", r"\mathfrak"), ("BLACK-LETTER", r"\mathfrak"), ("SCRIPT", r"\mathcal"),
    ("BOLD ITALIC", r"\boldsymbol"), ("BOLD", r"\mathbf"), ("SANS-SERIF", r"\mathsf"), ("MONOSPACE", r"\mathtt"),
    ("ITALIC", ""),
)  # fmt: skip
