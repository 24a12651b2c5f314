"""Bytes of web pages to Unicode, as browsers do it, with detection where nothing is declared.

The order: byte order mark, what the transport says, what the page says (in its first KILOBYTES),
UTF-8 if it is that, detection. Labels mean what the WHATWG Encoding Standard says: `latin1` is
windows-1252. What can't be decoded becomes U+FFFD.
"""

from __future__ import annotations

import codecs
import re

__all__ = ["charset_of", "declared_in_page", "decoded_page"]

_PRESCAN_BYTES = 4096
"""The standard says 1,024; pages with a longer beginning are common and browsers read them too."""
_DETECT_BYTES = 1 << 17

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_META = re.compile(
    rb"<meta\s[^>]{0,500}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{1,40})", re.IGNORECASE
)
_XML = re.compile(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})")

_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
}
"""Codecs of this language and those that the standard means by their names."""
_KNOWN = {
    *("utf-8", "utf-16-le", "utf-16-be", "koi8-r", "koi8-u", "cp866", "cp874", "cp932", "cp949"),
    *("euc_jp", "iso2022_jp", "gb18030", "big5hkscs", "mac-roman", "mac-cyrillic"),
    *(f"cp{number}" for number in range(1250, 1259)),
    *(f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
}
_OTHER_LABELS = {
    "dos-874": "cp874",
    "windows-874": "cp874",
    "windows-31j": "cp932",
    "ms_kanji": "cp932",
    "x-sjis": "cp932",
    "x-euc-jp": "euc_jp",
    "x-gbk": "gb18030",
    "x-x-big5": "big5hkscs",
    "cn-big5": "big5hkscs",
    "windows-949": "cp949",
    "x-mac-roman": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-mac-ukrainian": "mac-cyrillic",
    "logical": "iso8859-8",
    "visual": "iso8859-8",
    "iso-8859-8-i": "iso8859-8",
    "iso-8859-8-e": "iso8859-8",
    "unicode-1-1-utf-8": "utf-8",
    "unicode": "utf-16-le",
    "unicodefffe": "utf-16-be",
    **{f"x-cp{number}": f"cp{number}" for number in range(1250, 1259)},
}


def charset_of(label: str | None) -> str | None:
    """Returns the codec that a label means on the web; None if it means none that is read."""
    if not label:
        return None
    name = label.strip().strip("\"'").lower()
    if name in _OTHER_LABELS:
        return _OTHER_LABELS[name]
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):  # a NUL in the name
        return None
    found = _WIDER.get(found, found)
    return found if found in _KNOWN else None


def declared_in_page(data: bytes) -> str | None:
    """Returns the codec that a page names for itself, in `meta` or as XML."""
    head = data[:_PRESCAN_BYTES]
    found = _XML.match(head) or _META.search(head)
    charset = charset_of(found[1].decode("ascii")) if found else None
    return "utf-8" if charset and charset.startswith("utf-16") else charset  # it was readable


def decoded_page(data: bytes, *, declared: str | None = None, is_html: bool = True) -> str:
    """Returns the text of a page, without a byte order mark.

    Args:
        data: its bytes.
        declared: the label that came with it.
        is_html: whether it may name a charset itself.
    """
    for mark, charset in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(charset, "replace")
    known = charset_of(declared) or (declared_in_page(data) if is_html else None)
    if known is not None:
        return data.decode(known, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode(_detected(data), "replace")


def _detected(data: bytes) -> str:
    from resiliparse.parse.encoding import detect_encoding

    return charset_of(detect_encoding(data, _DETECT_BYTES)) or "cp1252"
