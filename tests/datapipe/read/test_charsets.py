from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datapipe.read.charsets import charset_of, declared_in_page, decoded_page


@pytest.mark.parametrize(
    ("label", "charset"),
    [
        ("utf8", "utf-8"),
        ("UTF-8", "utf-8"),
        (' "utf-8" ', "utf-8"),
        ("latin1", "cp1252"),
        ("ISO-8859-1", "cp1252"),
        ("us-ascii", "cp1252"),
        ("iso-8859-9", "cp1254"),
        ("iso-8859-2", "iso8859-2"),
        ("gb2312", "gb18030"),
        ("GBK", "gb18030"),
        ("shift_jis", "cp932"),
        ("x-sjis", "cp932"),
        ("windows-31j", "cp932"),
        ("euc-kr", "cp949"),
        ("ks_c_5601-1987", "cp949"),
        ("big5", "big5hkscs"),
        ("windows-1251", "cp1251"),
        ("x-cp1251", "cp1251"),
        ("koi8-u", "koi8-u"),
        ("windows-874", "cp874"),
        ("tis-620", "cp874"),
        ("iso-8859-8-i", "iso8859-8"),
        ("macintosh", "mac-roman"),
        ("utf-16", "utf-16-le"),
        ("euc-jp", "euc_jp"),
        ("iso-2022-jp", "iso2022_jp"),
        ("none", None),
        ("", None),
        (None, None),
        ("utf-7", None),
        ("base64", None),
        ("unicode_escape", None),
        ("punycode", None),
        ("a\0b", None),
    ],
)
def test_labels_mean_what_they_mean_on_the_web(label: str | None, charset: str | None) -> None:
    assert charset_of(label) == charset


@pytest.mark.parametrize(
    ("page", "charset"),
    [
        (b"<html><head><meta charset=koi8-r>", "koi8-r"),
        (b"<META CHARSET = 'Shift_JIS' />", "cp932"),
        (
            b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">',
            "cp1251",
        ),
        (b'<?xml version="1.0" encoding="iso-8859-2"?><html>', "iso8859-2"),
        (b"<meta charset=utf-16>", "utf-8"),
        (b"<meta charset=unheard-of>", None),
        (b"<meta name=x content=y>", None),
        (b" " * 5000 + b"<meta charset=koi8-r>", None),
        (b"", None),
    ],
)
def test_a_page_may_name_its_charset(page: bytes, charset: str | None) -> None:
    assert declared_in_page(page) == charset


JAPANESE = "<p>日本語のテキスト、これはテストです。</p>"
META = b"<meta charset=koi8-r>"


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        ("é".encode(), None, "é"),
        ("é".encode(), "latin1", "Ã©"),
        ("é".encode("latin-1"), "iso-8859-1", "é"),
        (b"\x80", "iso-8859-1", "€"),
        (b"\xef\xbb\xbf" + "é".encode(), "latin1", "é"),
        ("\ufeffé".encode("utf-16-le"), "utf-8", "é"),
        ("\ufeffé".encode("utf-16-be"), None, "é"),
        (META + "д".encode("koi8-r"), None, META.decode() + "д"),
        (META + "д".encode(), "utf-8", META.decode() + "д"),
        (META + "д".encode("koi8-r"), "unheard-of", META.decode() + "д"),
        (JAPANESE.encode("shift_jis"), None, JAPANESE),
        (JAPANESE.encode("euc_jp"), None, JAPANESE),
        (b"caf\xe9 cr\xe8me", None, "café crème"),
        (b"a\xffb", "utf-8", "a\ufffdb"),
        (b"\xe6\x97", "utf-8", "\ufffd"),
        (b"", None, ""),
    ],
)
def test_pages_are_decoded_by_mark_then_header_then_meta_then_looks(
    data: bytes, declared: str | None, text: str
) -> None:
    assert decoded_page(data, declared=declared) == text


def test_plain_text_names_no_charset_itself() -> None:
    data = META + "д".encode()
    assert decoded_page(data, is_html=False) == META.decode() + "д"


@given(data=st.binary(max_size=200), label=st.sampled_from([None, "big5", "utf-16", "iso-2022-jp"]))
def test_any_bytes_give_some_unicode_text(data: bytes, label: str | None) -> None:
    decoded_page(data, declared=label).encode()
