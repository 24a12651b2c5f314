from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

import pyarrow as pa
import pytest

from datapipe.clean.pii import plugins
from datapipe.clean.pii.checksums import is_luhn
from datapipe.engine.stages import document_stage
from datapipe.errors import FailedError, RecipeError, UsageError
from datapipe.recipe import load_recipe

Batch = Callable[[list[str]], pa.RecordBatch]

KINDS = ("email", "ipv4", "ipv6", "phone", "iban", "card", "secrets")
GITHUB = "ghp_" + "a1B2" * 9
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJlc2lnbmF0dXJl"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----"


def masked(batch: Batch, text: str) -> str:
    stage = document_stage("pii", dict.fromkeys(KINDS, "mask"))
    kept, *_ = stage.apply(batch([text]))
    result: str = kept.column("text")[0].as_py()
    return result


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Write to jane.doe+x@mail.example.co.uk.", "Write to [EMAIL]."),
        ("<a@b.org>, b_c@d-e.io;", "<[EMAIL]>, [EMAIL];"),
        ("联系我们abc@x.com吧", "联系我们[EMAIL]吧"),
        ("jürgen@müller.de", "[EMAIL]"),
        ("\U0001f600 a@b.com \U0001f600", "\U0001f600 [EMAIL] \U0001f600"),
        ("a@b.com@c.com", "[EMAIL]@c.com"),
        ("from 151.101.1.69:443 and 8.8.8.8/32", "from [IPV4]:443 and [IPV4]/32"),
        ("ping 1.1.1.1 please", "ping [IPV4] please"),
        ("2606:4700:4700::1111 and [2001:4860:4860::8888]", "[IPV6] and [[IPV6]]"),
        ("call +49 (0)30 1234567 or +1 212-555-0123", "call [PHONE] or [PHONE]"),
        ("(212) 555-0123, 212.555.0123", "[PHONE], [PHONE]"),
        ("IBAN DE89 3704 0044 0532 0130 00 BIC", "IBAN [IBAN] BIC"),
        ("GB82WEST12345698765432", "[IBAN]"),
        ("card 4111 1111 1111 1111, 378282246310005", "card [CARD], [CARD]"),
        ("5500-0000-0000-0004", "[CARD]"),
        (f"token={GITHUB}", "token=[SECRET]"),
        ("id AKIAIOSFODNN7EXAMPLE.", "id [SECRET]."),
        (f"Bearer {JWT}", "Bearer [SECRET]"),
        (f"a\n{KEY}\nb", "a\n[SECRET]\nb"),
        ("a -----BEGIN PRIVATE KEY-----\nMII", "a [SECRET]"),
        (f'AWS_SECRET_KEY = "{"aB/9" * 10}"', 'AWS_SECRET_KEY = "[SECRET]"'),
        ("xoxb-123456789012-abcdef", "[SECRET]"),
    ],
)  # fmt: skip
def test_what_is_personal_is_masked(batch: Batch, text: str, expected: str) -> None:
    assert masked(batch, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "version 8.4.112.12, v151.101.1.69", "Chrome/120.0.6099.71 Safari", "section 1.2.3.4",
        "1.2.3.4 Heading", "8.4.0.12", "1.2.3.4.5", "256.1.1.1", "192.168.1.10 127.0.0.1",
        "203.0.113.9", "01.02.103.04", "release-151.101.1.69",
        "icon@2x.png", "@handle", "a@b", "a @ b.com", "a@@b.com", "git@github.com:org/repo.git",
        "user@localhost", "a..b@c", "std::vector", "12:34:56", "fe80::1", "2001:db8::1", "2024:12",
        "1234567890", "2024-05-17 12:30:00", "+1", "isbn 978-3-16-148410-0", "3.14159265358979",
        "DE89 3704 0044 0532 0130 01", "DE12ABC", "XX82WEST12345698765432", "4111 1111 1111 1112",
        "4111111111111111111111", "0000 0000 0000 0000", "1234.4111111111111111",
        "AKIA", "sk-learn", "eyJ", "ghp_short", "sk-" + "a-b" * 20, "risk_live_" + "a" * 30,
        "", "@", "\x00@\x00",
    ],
)  # fmt: skip
def test_what_only_looks_like_it_stays(batch: Batch, text: str) -> None:
    assert masked(batch, text) == text


def test_places_are_code_points_of_the_text_that_came(batch: Batch) -> None:
    text = "\U0001f600é a@b.com, call +12125550123, a@b.com"
    options = {"email": "tag", "phone": "mask"}
    kept, dropped, signals = document_stage("pii", options).apply(batch(["plain", text]))
    assert kept.column("text").to_pylist() == ["plain", text.replace("+12125550123", "[PHONE]")]
    assert dropped.num_rows == 0
    assert signals is not None
    assert signals.column("pii.email").to_pylist() == [0, 2]
    assert signals.column("pii.phone").to_pylist() == [0, 1]
    assert signals.column("pii.spans")[0].as_py() is None
    spans = json.loads(signals.column("pii.spans")[1].as_py())
    assert [(kind, text[start:end]) for kind, start, end in spans] == [("email", "a@b.com")] * 2


def test_documents_with_what_drops_them_go(batch: Batch) -> None:
    stage = document_stage("pii", {"secrets": "drop", "email": "keep"})
    kept, dropped, _ = stage.apply(batch(["a@b.com", f"{GITHUB} {JWT}", "c"]))
    assert kept.column("text").to_pylist() == ["a@b.com", "c"]
    (row,) = dropped.to_pylist()
    assert (row["stage"], row["rule"], row["value"]) == ("pii", "secrets", 2)


def test_masks_can_be_chosen(batch: Batch) -> None:
    stage = document_stage("pii", {"masks": {"email": "<m>"}})
    kept, *_ = stage.apply(batch(["a@b.com 151.101.1.69"]))
    assert kept.column("text").to_pylist() == ["<m> [IPV4]"]


def test_kinds_that_are_all_kept_leave_the_batch_as_it_is(batch: Batch) -> None:
    given = batch(["a@b.com"])
    kept, _, signals = document_stage("pii", dict.fromkeys(KINDS, "keep")).apply(given)
    assert kept is given
    assert signals is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{masks: {mail: x}}", "'mail' isn't a kind; masks are of card, email"),
        ("{plugins: {email: mask}}", "'email' in plugins is an option already"),
        ("{plugins: {Big: mask}}", "match pattern"),
        ("{email: hide}", "'mask', 'drop', 'tag' or 'keep'"),
    ],
)
def test_wrong_options_are_named(options: str, message: str) -> None:
    recipe = f"name: x\ninputs: [{{source: s, paths: [a]}}]\nstages:\n- pii: {options}\n"
    with pytest.raises(RecipeError, match=message):
        load_recipe(recipe)


@pytest.mark.parametrize(("digits", "fits"), [("79927398713", True), ("79927398710", False)])
def test_luhn(digits: str, fits: bool) -> None:
    assert is_luhn(digits) == fits


def find_ssn(text: str) -> Iterator[Any]:
    yield from ((place, place + 3) for place in range(len(text) - 2) if text[place] == "#")
    if "fails" in text:
        raise KeyError("x")
    if "nonsense" in text:
        yield "nowhere"


@pytest.fixture
def ssn(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = metadata.EntryPoint("ssn", f"{__name__}:find_ssn", plugins.GROUP)
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda _: find_ssn)
    monkeypatch.setattr(
        metadata,
        "entry_points",
        lambda **wanted: [entry] if wanted.get("name", "ssn") == "ssn" else [],
    )


@pytest.mark.usefixtures("ssn")
def test_packages_bring_further_kinds_along(batch: Batch) -> None:
    stage = document_stage("pii", {"plugins": {"ssn": "mask"}})
    kept, _, signals = stage.apply(batch(["an #12 and a@b.com"]))
    assert kept.column("text").to_pylist() == ["an [SSN] and [EMAIL]"]
    assert signals is not None
    assert signals.column("pii.ssn").to_pylist() == [1]
    with pytest.raises(
        FailedError, match=r"ssn of datapipe\.pii found 'nowhere' in a text of 8 ch"
    ):
        stage.apply(batch(["nonsense"]))
    with pytest.raises(FailedError, match=r"ssn of datapipe\.pii failed: KeyError: 'x'; nothing"):
        stage.apply(batch(["fails"]))


@pytest.mark.usefixtures("ssn")
def test_a_kind_that_nobody_brings_along_is_named() -> None:
    with pytest.raises(
        UsageError, match=r"0 installed packages bring along 'tax'.*\(there are ssn"
    ):
        document_stage("pii", {"plugins": {"tax": "mask"}})
