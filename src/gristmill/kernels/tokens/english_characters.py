"""The classes of characters that English tokenisation rules speak of.

Facts of the `en` defaults of spaCy 3.8, written down as ranges: a class that follows from Unicode's categories is
derived from them, and the rest is listed. `make conformance` compares every code point with the tool itself.
"""

import unicodedata
from functools import cache

# Scripts whose letters have a case, then those whose letters have none and so count as both upper and lower.
_CASED = (
    "41-5A 61-7A C0-D6 D8-F6 F8-1BF 1C4-2AF 386 388-38A 38C 38E-38F 391-3A9 3AC-3AF 3B1-3C9 3CC-3CE 400-401 403-40A "
    "40C-40D 410-451 453-45A 45C-45D 490-491 496-497 4A2-4A3 4AE-4AF 4BA-4BB 4D8-4D9 4E8-4E9 1D00-1D25 1D6B-1D77 "
    "1D79-1D9A 1E00-1EFF 2C60-2C7B 2C7E-2C7F A722-A76F A771-A787 A78B-A78E A790-A7B9 A7FA AB30-AB5A AB60-AB64 "
    "FF21-FF3A FF41-FF5A"
)
_UNCASED = (
    "591-5F4 620-64A 66E-6D5 6E5-6FF 750-77F 8A0-8BD 900-9FF B80-CFF D80-DFF 1100-137F 2E80-2FDF 2FF0-30FF 31C0-31EF "
    "3200-4DBF 4E00-9FFF AC00-D7AF F900-FAFF FB1D-FBB1 FBD3-FD3D FD50-FDC7 FDF0-FDFB FE30-FE4F FE70-FEFC 1EE00-1EEBB "
    "1F200-1F2FF 20000-2A6DF 2A700-2EBEF 2F800-2FA1F"
)
_ODD_LOWER, _ODD_UPPER = {0x294}, {0x3A2}  # counted with a case that Unicode does not give them

# Pictures and signs: category So as it was in Unicode 11.
_ICONS = (
    "A6 A9 AE B0 482 58D-58E 60E-60F 6DE 6E9 6FD-6FE 7F6 9FA B70 BF3-BF8 BFA C7F D4F D79 F01-F03 F13 F15-F17 F1A-F1F "
    "F34 F36 F38 FBE-FC5 FC7-FCC FCE-FCF FD5-FD8 109E-109F 1390-1399 1940 19DE-19FF 1B61-1B6A 1B74-1B7C 2100-2101 "
    "2103-2106 2108-2109 2114 2116-2117 211E-2123 2125 2127 2129 212E 213A-213B 214A 214C-214D 214F 218A-218B "
    "2195-2199 219C-219F 21A1-21A2 21A4-21A5 21A7-21AD 21AF-21CD 21D0-21D1 21D3 21D5-21F3 2300-2307 230C-231F "
    "2322-2328 232B-237B 237D-239A 23B4-23DB 23E2-2426 2440-244A 249C-24E9 2500-25B6 25B8-25C0 25C2-25F7 2600-266E "
    "2670-2767 2794-27BF 2800-28FF 2B00-2B2F 2B45-2B46 2B4D-2B73 2B76-2B95 2B98-2BC8 2BCA-2BFE 2CE5-2CEA 2E80-2E99 "
    "2E9B-2EF3 2F00-2FD5 2FF0-2FFB 3004 3012-3013 3020 3036-3037 303E-303F 3190-3191 3196-319F 31C0-31E3 3200-321E "
    "322A-3247 3250 3260-327F 328A-32B0 32C0-32FE 3300-33FF 4DC0-4DFF A490-A4C6 A828-A82B A836-A837 A839 AA77-AA79 "
    "FDFD FFE4 FFE8 FFED-FFEE FFFC-FFFD 10137-1013F 10179-10189 1018C-1018E 10190-1019B 101A0 101D0-101FC "
    "10877-10878 10AC8 1173F 16B3C-16B3F 16B45 1BC9C 1D000-1D0F5 1D100-1D126 1D129-1D164 1D16A-1D16C 1D183-1D184 "
    "1D18C-1D1A9 1D1AE-1D1E8 1D200-1D241 1D245 1D300-1D356 1D800-1D9FF 1DA37-1DA3A 1DA6D-1DA74 1DA76-1DA83 "
    "1DA85-1DA86 1ECAC 1F000-1F02B 1F030-1F093 1F0A0-1F0AE 1F0B1-1F0BF 1F0C1-1F0CF 1F0D1-1F0F5 1F110-1F16B "
    "1F170-1F1AC 1F1E6-1F202 1F210-1F23B 1F240-1F248 1F250-1F251 1F260-1F265 1F300-1F3FA 1F400-1F6D4 1F6E0-1F6EC "
    "1F6F0-1F6F9 1F700-1F773 1F780-1F7D8 1F800-1F80B 1F810-1F847 1F850-1F859 1F860-1F887 1F890-1F8AD 1F900-1F90B "
    "1F910-1F93E 1F940-1F970 1F973-1F976 1F97A 1F97C-1F9A2 1F9B0-1F9B9 1F9C0-1F9C2 1F9D0-1F9FF 1FA60-1FA6D"
)

PUNCTUATION = "…,:;!?¿؟¡()[]{}<>_#*&。？！，、；：～·।،۔؛٪"
QUOTES = "'\"”“`‘´’‚,„»«「」『』（）〔〕【】《》〈〉\u2329\u232a⟦⟧"
CURRENCY = ("$", "£", "€", "¥", "฿", "US$", "C$", "A$", "﷼", *map(chr, range(0x20A0, 0x20C0)))
HYPHENS = ("---", "--", "——", "-", "–", "—", "~")  # longest first
# Units that may follow a number without a space. In the tool's list the last Cyrillic one is glued to an Arabic one.
UNITS = (
    *"km km² km³ m m² m³ dm dm² dm³ cm cm² cm³ mm mm² mm³ ha µm nm yd in ft kg g mg µg t lb oz m/s km/h kmh".split(),
    *"mph hPa Pa mbar mb MB kb KB gb GB tb TB T G M K % км км² км³ м м² м³ дм дм² дм³ см см² см³ мм мм² мм³ нм".split(),
    *"кг г мг м/с км/ч кПа Па мбар Кб КБ кб Мб МБ мб Гб ГБ гб Тб ТБ тбكم كم كم² كم³ م م² م³ سم سم² سم³ مم مم²".split(),
    *"مم³ غرام جرام جم كغ ملغ كوب اكواب".split(),
)


def _ranges(listing: str) -> list[tuple[int, int]]:
    pairs = (item.partition("-") for item in listing.split())
    return [(int(first, 16), int(last or first, 16)) for first, _, last in pairs]


def _code_points(listing: str) -> set[int]:
    return {point for first, last in _ranges(listing) for point in range(first, last + 1)}


def _runs(points: set[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for point in sorted(points):
        if runs and runs[-1][1] == point - 1:
            runs[-1] = (runs[-1][0], point)
        else:
            runs.append((point, point))
    return runs


@cache
def class_ranges() -> dict[str, list[tuple[int, int]]]:
    """Return the code points that are "alpha", "lower", "upper" or "icons", as (first, last)."""
    cased, uncased = _code_points(_CASED), _code_points(_UNCASED)
    lower = {point for point in cased if unicodedata.category(chr(point)) == "Ll"} | _ODD_LOWER
    upper = {point for point in cased if unicodedata.category(chr(point)) == "Lu"} | _ODD_UPPER
    return {
        "alpha": _runs(cased | uncased),
        "lower": _runs(lower | uncased),
        "upper": _runs(upper | uncased),
        "icons": _ranges(_ICONS),
    }


def character_class(name: str) -> str:
    """Return a class as the inside of a regular expression's [...]."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in class_ranges()[name])
