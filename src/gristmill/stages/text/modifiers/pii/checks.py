"""Check digits: what tells a card or account number from any other long number.

Luhn is ISO/IEC 7812-1 annex B, the account number's remainder ISO 7064 MOD 97-10 as ISO 13616 uses it.
"""

import ipaddress
import re

# Lengths by country, from the SWIFT IBAN registry.
_IBAN_CHARS = {
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE",), 16),
    **dict.fromkeys(("DK", "FI", "FO", "GL", "NL", "FK"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "LT", "LU", "XK", "MN"), 20),
    **dict.fromkeys(("CH", "HR", "LI", "LV"), 21),
    **dict.fromkeys(("BG", "BH", "CR", "DE", "GB", "GE", "IE", "ME", "RS", "VA"), 22),
    **dict.fromkeys(("AE", "GI", "IL", "IQ", "OM", "SO", "TL"), 23),
    **dict.fromkeys(("AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN", "VG"), 24),
    **dict.fromkeys(("LY", "PT", "ST"), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("BI", "DJ", "FR", "GR", "IT", "MC", "MR", "SM"), 27),
    **dict.fromkeys(("AL", "AZ", "BY", "CY", "DO", "GT", "HN", "HU", "LB", "NI", "PL", "SV"), 28),
    **dict.fromkeys(("BR", "EG", "PS", "QA", "UA"), 29),
    **dict.fromkeys(("JO", "KW", "MU", "YE"), 30),
    **dict.fromkeys(("MT", "SC"), 31),
    **dict.fromkeys(("LC",), 32),
    **dict.fromkeys(("RU",), 33),
}
# By the first digits: Visa, Mastercard, American Express, Diners, Discover, JCB, UnionPay, Maestro, and their lengths.
_CARD = re.compile(
    "4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|2[2-7])[0-9]{14}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}"
    "|(?:6(?:011|5[0-9]{2}|4[4-9][0-9])|35[0-9]{2}|62[0-9]{2})[0-9]{12,15}|(?:50|5[678]|6[37])[0-9]{11,17}"
)
_SEPARATORS = str.maketrans("", "", " -")


def is_card_number(text: str) -> bool:
    """Whether digits, with spaces or hyphens between them, are a card number: of an issuer, Luhn sum 0 modulo 10.

    >>> is_card_number("4111 1111 1111 1111"), is_card_number("4111 1111 1111 1112")
    (True, False)
    """
    compact = text.translate(_SEPARATORS)
    if not _CARD.fullmatch(compact):
        return False
    digits = [int(digit) for digit in compact]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def is_account_number(text: str) -> bool:
    """Whether a text is an IBAN: a known country, its length, remainder 1 modulo 97.

    >>> is_account_number("DE89 3704 0044 0532 0130 00"), is_account_number("DE88 3704 0044 0532 0130 00")
    (True, False)
    """
    compact = text.translate(_SEPARATORS).upper()
    if _IBAN_CHARS.get(compact[:2]) != len(compact):
        return False
    rearranged = compact[4:] + compact[:4]
    return int("".join(str(int(character, 36)) for character in rearranged)) % 97 == 1


def is_ip_address(text: str) -> bool:
    """Whether a text is an address of the internet protocol, version 4 or 6."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
