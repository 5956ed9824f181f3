"""Which language a page is in, and the stop words of languages.

Languages have English names in capitals here ("ENGLISH", "HAITIAN_CREOLE"), as in the stop lists that users know; the
model that finds them says "en" and "ht". Either may be the key of a list.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from gristmill.errors import require
from gristmill.models.fasttext_model import bundled_model
from gristmill.stages.text.html.language_model import LanguageModel

UNKNOWN = "UNKNOWN"
# Of a page's longest paragraphs. Most languages are clear from the first line; where they are not, more is looked at.
# On 688 pages of manuals full of English words it is right on 15 more than 800 characters for all, in half the time.
LOOK_CHARS, FIRST_CHARS, SURE = 1_600, 150, 0.97
_LABEL = "__label__"

# Of lid.176, by its codes.
_NAMES = """
af AFRIKAANS als ALEMANNIC am AMHARIC an ARAGONESE ar ARABIC arz EGYPTIAN_ARABIC as ASSAMESE ast ASTURIAN av AVARIC az
AZERBAIJANI azb SOUTH_AZERBAIJANI ba BASHKIR bar BAVARIAN bcl CENTRAL_BIKOL be BELARUSIAN bg BULGARIAN bh BIHARI bn
BENGALI bo TIBETAN bpy BISHNUPRIYA_MANIPURI br BRETON bs BOSNIAN bxr BURIAT ca CATALAN cbk CHAVACANO ce CHECHEN ceb
CEBUANO ckb CENTRAL_KURDISH co CORSICAN cs CZECH cv CHUVASH cy WELSH da DANISH de GERMAN diq DIMLI dsb LOWER_SORBIAN
dty DOTYALI dv DHIVEHI el GREEK eml EMILIAN_ROMAGNOL en ENGLISH eo ESPERANTO es SPANISH et ESTONIAN eu BASQUE fa
PERSIAN fi FINNISH fr FRENCH frr NORTH_FRISIAN fy WEST_FRISIAN ga IRISH gd SCOTS_GAELIC gl GALICIAN gn GUARANI gom
GOAN_KONKANI gu GUJARATI gv MANX he HEBREW hi HINDI hif FIJI_HINDI hr CROATIAN hsb UPPER_SORBIAN ht HAITIAN_CREOLE hu
HUNGARIAN hy ARMENIAN ia INTERLINGUA id INDONESIAN ie INTERLINGUE ilo ILOKO io IDO is ICELANDIC it ITALIAN ja JAPANESE
jbo LOJBAN jv JAVANESE ka GEORGIAN kk KAZAKH km KHMER kn KANNADA ko KOREAN krc KARACHAY_BALKAR ku KURDISH kv KOMI kw
CORNISH ky KYRGYZ la LATIN lb LUXEMBOURGISH lez LEZGHIAN li LIMBURGISH lmo LOMBARD lo LAOTHIAN lrc NORTHERN_LURI lt
LITHUANIAN lv LATVIAN mai MAITHILI mg MALAGASY mhr EASTERN_MARI min MINANGKABAU mk MACEDONIAN ml MALAYALAM mn
MONGOLIAN mr MARATHI mrj WESTERN_MARI ms MALAY mt MALTESE mwl MIRANDESE my BURMESE myv ERZYA mzn MAZANDERANI nah
NAHUATL nap NEAPOLITAN nds LOW_SAXON ne NEPALI new NEWAR nl DUTCH nn NORWEGIAN_N no NORWEGIAN oc OCCITAN or ORIYA os
OSSETIAN pa PUNJABI pam PAMPANGA pfl PALATINE_GERMAN pl POLISH pms PIEDMONTESE pnb WESTERN_PANJABI ps PASHTO pt
PORTUGUESE qu QUECHUA rm RHAETO_ROMANCE ro ROMANIAN ru RUSSIAN rue RUSYN sa SANSKRIT sah YAKUT sc SARDINIAN scn
SICILIAN sco SCOTS sd SINDHI sh SERBO_CROATIAN si SINHALESE sk SLOVAK sl SLOVENIAN so SOMALI sq ALBANIAN sr SERBIAN su
SUNDANESE sv SWEDISH sw SWAHILI ta TAMIL te TELUGU tg TAJIK th THAI tk TURKMEN tl TAGALOG tr TURKISH tt TATAR tyv
TUVINIAN ug UIGHUR uk UKRAINIAN ur URDU uz UZBEK vec VENETIAN vep VEPS vi VIETNAMESE vls VLAAMS vo VOLAPUK wa WALLOON
war WARAY_PHILIPPINES wuu WU_CHINESE xal KALMYK xmf MINGRELIAN yi YIDDISH yo YORUBA yue CANTONESE zh CHINESE
""".split()
NAME_OF = dict(zip(_NAMES[::2], _NAMES[1::2], strict=True))
CODE_OF = {name: code for code, name in NAME_OF.items()}

# Languages that users know by other names than jusText's.
_OTHER_NAMES = {
    "HAITIAN": "HAITIAN_CREOLE",
    "NORWEGIAN_BOKMAL": "NORWEGIAN",
    "NORWEGIAN_NYNORSK": "NORWEGIAN_N",
    "WARAY_WARAY": "WARAY_PHILIPPINES",
}
_LEFT_OUT = ("LATIN",)  # pages that are taken for Latin are mostly something else
# Stop words are not counted where words have no spaces between them; a list says that the language is wanted.
_NOT_SPACED = {
    "THAI": frozenset("ที่ และ ใน ของ เป็น การ มี ได้ ว่า จะ ไม่ ให้ กับ จาก".split()),
    "CHINESE": frozenset("的 是 了 在 和 有 我 他 这 這 不 也 就 人 都 上 们 們 你 她 它".split()),
    "JAPANESE": frozenset("の に は を た が で て と し れ さ ある いる も する から な こと として".split()),
}


def language_of(paragraphs: Sequence[str]) -> str:
    """Return the English name of the language that most of the longest paragraphs are in; UNKNOWN without a word."""
    sample, room = [], LOOK_CHARS
    for paragraph in sorted(paragraphs, key=len, reverse=True):
        sample.append(paragraph[:room])
        room -= len(paragraph)
        if room <= 0:
            break
    line = " ".join(" ".join(sample).split())
    found = language_model().predict(line[:FIRST_CHARS]) if line else None
    if found is not None and found[1] < SURE and len(line) > FIRST_CHARS:
        found = language_model().predict(line)
    if found is None:
        return UNKNOWN
    code = found[0].removeprefix(_LABEL)
    return NAME_OF.get(code, code.upper())


@cache
def language_model() -> LanguageModel:
    """Return lid.176, loaded once in every process."""
    return LanguageModel(Path(bundled_model()))


def key_of(language: str, stop_lists: Mapping[str, frozenset[str]]) -> str | None:
    """Return the key of a language's stop list, by its name or its code; None if there is none."""
    return next((key for key in (language, CODE_OF.get(language, "")) if key in stop_lists), None)


@cache
def known_stop_lists() -> dict[str, frozenset[str]]:
    """Return jusText's lists by the names of languages, and short ones for Thai, Chinese and Japanese."""
    library = require("justext.utils", extra="html")
    lists = {}
    for listed in sorted(library.get_stoplists()):
        name = _OTHER_NAMES.get(listed.upper(), listed.upper())
        if name not in _LEFT_OUT:
            lists[name] = library.get_stoplist(listed)
    return lists | _NOT_SPACED
