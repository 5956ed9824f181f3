"""Strings that English tokenisation cuts in a way of their own, whatever the rules for punctuation would say.

Facts of the `en` defaults of spaCy 3.8, as a grammar: contractions are stems times endings, with the apostrophe and
without it, in lower case and capitalised, and what has an apostrophe may have a curly one.
`make conformance` compares the whole table with the tool's.
"""

from functools import cache

# Endings of one stem, cut where a blank stands.
_WOULD = "'d|'d 've|'ll|'ll 've"
_STEMS = {
    "i": f"{_WOULD}|'ve|'m|'m a",
    "you we they": f"{_WOULD}|'ve|'re",
    "he she it that this": f"{_WOULD}|'s",
    "who what when where why how there": f"{_WOULD}|'ve|'re|'s",
    "these those": f"{_WOULD}|'ve|'re",
    "could might must should would": "'ve|n't|n't 've",
    "ca do does did had may need ought sha wo": "n't|n't 've",
    "ai are is was were have has dare": "n't",
    "not": "'ve",
}
_WORDS_THEMSELVES = "ill its hell shell shed were well whore"  # contractions without apostrophe that are other words

_CUT = "can|not gon|na got|ta let|'s c'm|on"  # in lower case and capitalised
_CUT_AS_WRITTEN = "y'|all y|all how|'d|'y How|'d|'y °|c|. °|f|. °|k|. °|C|. °|F|. °|K|."

# Whole tokens. In lower case and capitalised:
_DROPPED_G = "doin goin nothin nuthin ol somethin lovin havin"  # with and without an apostrophe after
_EITHER_CASE = "ma'am o'clock 'cause 'cos 'coz 'cuz"
# As written:
_DROPPED_START = "em ll nuff"  # with and without an apostrophe before
_SMALL_WORDS = "'S 's ‘S ‘s 'd 're 'bout and/or w/o"
_ABBREVIATIONS = (
    "Adm. Ak. Ala. Apr. Ariz. Ark. Aug. Bros. Calif. Co. Colo. Conn. Corp. D.C. Dec. Del. Dr. E.G. E.g. Feb. Fla. Ga. "
    "Gen. Gov. I.E. I.e. Ia. Id. Ill. Inc. Ind. Jan. Jr. Jul. Jun. Kan. Kans. Ky. La. Ltd. Mar. Mass. Md. Messrs. "
    "Mich. Minn. Miss. Mo. Mont. Mr. Mrs. Ms. Mt. N.C. N.D. N.H. N.J. N.M. N.Y. Neb. Nebr. Nev. Nov. Oct. Okla. Ore. "
    "Pa. Ph.D. Prof. Rep. Rev. S.C. Sen. Sep. Sept. St. Tenn. Va. Wash. Wis. a.m. co. e.g. i.e. p.m. v.s. vs. ä. ö. ü."
)
_SIGNS = r"""— ' '' C++ <space> \t \n \")"""
_EMOTICONS = r"""
    :) :-) :)) :-)) :))) :-))) (: (-: =) (= :] :-] [: [-: [= =] ]= =[ :o) (o: :} :-} 8) 8-) (-8 ;) ;-) (; (-; :( :-( :((
    :-(( :((( :-((( ): )-: =( >:( :') :'-) :'( :'-( :/ :-/ =/ =| :| :-| :1 :P :-P :p :-p :O :-O :o :-o :0 :-0 :() >:o :*
    :-* :3 :-3 =3 :> :-> :X :-X :x :-x :D :-D ;D ;-D =D xD XD xDD XDD 8D 8-D ^_^ ^__^ ^___^ >.< >.> <.< ._. ;_; -_- -__-
    v.v V.V v_v V_V o_o o_O O_o O_O 0_o o_0 0_0 o.O O.o O.O o.o 0.0 o.0 0.o @_@ <3 <33 <333 </3 (^_^) (-_-) (._.) (>_<)
    (*_*) (¬_¬) ಠ_ಠ ಠ︵ಠ (ಠ_ಠ) ¯\(ツ)/¯ (╯°□°）╯︵┻━┻ ><(((*>
"""
_WHITE_SPACE = (" ", "\t", "\n", "\u00a0")


def _both_cases(words: str) -> list[str]:
    return [*words.split(), *(word[0].upper() + word[1:] for word in words.split())]


def _contractions() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for stems, endings in _STEMS.items():
        for stem in _both_cases(stems):
            for ending in endings.split("|"):
                for written in (ending, ending.replace("'", "")):
                    found[stem + written.replace(" ", "")] = [stem, *written.split()]
    for word in _both_cases(_WORDS_THEMSELVES):
        found.pop(word, None)
    return found


def _times() -> dict[str, list[str]]:
    halves = ("a.m.", "am", "p.m.", "pm")
    return {f"{hour}{half}": [str(hour), half] for hour in range(1, 13) for half in halves}


def _whole() -> list[str]:
    dropped_g = _both_cases(_DROPPED_G)
    dropped_start = _DROPPED_START.split()
    capital_after_apostrophe = [word.title() for word in _EITHER_CASE.split() if word.startswith("'")]
    listed = f"{_SMALL_WORDS} {_ABBREVIATIONS} {_SIGNS} {_EMOTICONS}".split()
    letters = [f"{letter}." for letter in "abcdefghijklmnopqrstuvwxyz"]
    return [
        *(dropped_g + [f"{word}'" for word in dropped_g]),
        *(dropped_start + [f"'{word}" for word in dropped_start]),
        *(_both_cases(_EITHER_CASE) + capital_after_apostrophe),
        *(listed + letters),
        *_WHITE_SPACE,
    ]


@cache
def exceptions() -> dict[str, list[str]]:
    """Return the tokens of every string that has an entry."""
    cut = [*_both_cases(_CUT), *_CUT_AS_WRITTEN.split()]
    straight = (
        _contractions()
        | _times()
        | {word.replace("|", ""): word.split("|") for word in cut}
        | {word: [word] for word in _whole()}
    )
    curly = {word.replace("'", "’"): [token.replace("'", "’") for token in straight[word]] for word in straight}
    return curly | straight
