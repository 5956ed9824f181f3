"""Templates that readers see as text, and what that text is, as data. All others are dropped.

`{1}` is the first argument without a name, `{last}` the last one, `{all}` all of them end to end, `{list}` all of them
with commas. A name that ends with a hyphen stands for all that begin with it: `lang-` for `lang-fr`. Names are in lower
case. Most are of the English Wikipedia, which many other languages have copied; the rest are of single languages.

No form has more bytes of its own than the call of its template, so a text never grows by it (a test sees to that).
"""

_TEMPLATES: dict[str, str] = {
    "{1}": """
        nowrap, nobr, nobreak, small, smaller, big, large, larger, smallcaps, sc, sc1, allcaps, underline,
        code, mono, kbd, samp, key, key press, var, math, mvar, bigmath, val, num, overline, sub,
        lang-, script, unicode, ipa link, abbr, abbrlink, tooltip, visible anchor, vanchor, linktext,
        ill, illm, interlanguage link, link-interwiki, sic, not a typo, proper name, chem2,
        quote, blockquote, bquote, cquote, quotation, quote box, centered pull quote, pull quote, poemquote,
        poem quote, center, block indent, plainlist, flatlist, plain list,
        citation bloc, début citation, nombre, petites capitales,
        cita, citazione, citaat, cytat, citat, цитата, link-en, le, ruby
    """,
    "{2}": "lang, langx, rtl-lang, font color, font colour, color, colour, fontcolor, numblk, langue, couleur",
    "{last}": "transl, transliteration, tlit, xlit, sort, resize, font, tsl",
    "{all}": "gaps, chem, phys",
    "{list}": "hlist, ubl, unbulleted list, ublist",
    "{1} {2}": "convert, cvt, sortname, unité, unidad, fmtn, ship, sclass, sclass2",
    "{1} {2} {3}": "date-",
    "{1}/{2}": "frac, sfrac, fraction, tfrac, bruch",
    "{1} ({2}, {3})": "nihongo",
    "{1}（{2}）": "読み仮名",
    "c. {1}": "circa, c., ca.",
    "fl. {1}": "floruit, fl.",
    "r. {1}": "reign",
    "as of {1}": "as of",
    "×10^{1}": "e, e-sp",
    "^{1}": "sup",
    "√{1}": "radic, sqrt",
    "⟨{1}⟩": "angbr, angle bracket",
    "HMS {1}": "hms",
    "HMAS {1}": "hmas",
    "HMCS {1}": "hmcs",
    "USS {1}": "uss",
    "SS {1}": "ss",
    "MS {1}": "ms",
    "MV {1}": "mv",
    "RMS {1}": "rms",
    "SMS {1}": "sms",
    "US${1}": "us$, usd",
    "£{1}": "gbp, £",
    "€{1}": "euro, €",
    "¥{1}": "jpy, ¥",
    "₹{1}": "inr, ₹",
    "–": "ndash, en dash, endash, –",
    " – ": "spaced ndash, snd, spnd, spaced en dash, dash",
    "—": "mdash, em dash, emdash, —",
    " — ": "spaced mdash, smd",
    "-": "hyphen, nbhyph",
    "−": "minus, −",
    "·": "·, middot",
    " · ": "dot",
    " • ": "•, bullet",
    "'": "'",
    "’": "’",
    "…": "…, ellipsis",
    "[": "bracket",
    "|": "!, pipe",
    "=": "=",
    "\u00a0": "nbsp, space, spaces, thin space, thinsp, hair space, hairsp, nnbsp",
    "π": "pi",
    "°": "deg, °",
    "♯": "sharp, music sharp",
    "♭": "flat, music flat",
}

TEXT_FUNCTIONS = ("formatnum", "lc", "uc", "lcfirst", "ucfirst", "#dateformat", "#formatdate")
"""Functions of MediaWiki whose text stands behind their colon."""


def text_templates() -> dict[str, str]:
    """Return the form of every known template by its name."""
    return {" ".join(name.split()): form for form, names in _TEMPLATES.items() for name in names.split(",")}
