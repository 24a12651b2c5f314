"""Numbers that carry a check of themselves: cards (Luhn) and bank accounts (ISO 13616)."""

from __future__ import annotations

import re

__all__ = ["iban_end", "is_card", "is_luhn"]

_IBAN_LENGTHS = {
    entry[:2]: int(entry[2:])
    for entry in [
        "AD24",
        "AE23",
        "AL28",
        "AT20",
        "AZ28",
        "BA20",
        "BE16",
        "BG22",
        "BH22",
        "BI27",
        "BR29",
        "BY28",
        "CH21",
        "CR22",
        "CY28",
        "CZ24",
        "DE22",
        "DJ27",
        "DK18",
        "DO28",
        "EE20",
        "EG29",
        "ES24",
        "FI18",
        "FK18",
        "FO18",
        "FR27",
        "GB22",
        "GE22",
        "GI23",
        "GL18",
        "GR27",
        "GT28",
        "HN28",
        "HR21",
        "HU28",
        "IE22",
        "IL23",
        "IQ23",
        "IS26",
        "IT27",
        "JO30",
        "KW30",
        "KZ20",
        "LB28",
        "LC32",
        "LI21",
        "LT20",
        "LU20",
        "LV21",
        "LY25",
        "MC27",
        "MD24",
        "ME22",
        "MK19",
        "MN20",
        "MR27",
        "MT31",
        "MU30",
        "NI28",
        "NL18",
        "NO15",
        "OM23",
        "PK24",
        "PL28",
        "PS29",
        "PT25",
        "QA29",
        "RO24",
        "RS22",
        "RU33",
        "SA24",
        "SC31",
        "SD18",
        "SE24",
        "SI19",
        "SK24",
        "SM27",
        "SO23",
        "ST25",
        "SV28",
        "TL23",
        "TN24",
        "TR26",
        "UA29",
        "VA22",
        "VG24",
        "XK20",
        "YE30",
    ]
}

_CARDS = re.compile(
    r"4\d{12}(?:\d{3}){0,2}"  # Visa: 13, 16, 19
    r"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|(?:6011|64[4-9]\d|65\d\d)\d{12}(?:\d{3})?"  # Discover
    r"|35(?:2[89]|[3-8]\d)\d{12}"  # JCB
    r"|3(?:0[0-5]|[689]\d)\d{11}"  # Diners
    r"|62\d{14,17}"  # UnionPay
)


def is_luhn(digits: str) -> bool:
    """Tells whether the last of some digits is the check digit of the others."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0


def is_card(digits: str) -> bool:
    """Tells whether digits are the number of a payment card of a known issuer."""
    return _CARDS.fullmatch(digits) is not None and is_luhn(digits)


def iban_end(text: str, start: int) -> int | None:
    """Returns where the IBAN ends that begins at `start`; None: there is none.

    Its characters may stand in groups with one space between them.
    """
    length = _IBAN_LENGTHS.get(text[start : start + 2])
    if length is None:
        return None
    characters: list[str] = []
    end = start
    while len(characters) < length and end < len(text):
        character = text[end]
        if character == " " and text[end - 1] != " ":
            end += 1
            continue
        if not (character.isascii() and (character.isdigit() or character.isupper())):
            return None
        characters.append(character)
        end += 1
    if len(characters) < length or text[end : end + 1].isalnum():
        return None
    number = "".join(str(int(c, 36)) for c in characters[4:] + characters[:4])
    return end if int(number) % 97 == 1 else None
