"""Keys, tokens and passwords whose makers gave them a form of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["MAY_BE_SECRET", "secrets"]

_FORMS = (
    r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS
    r"gh[pousr]_[A-Za-z0-9]{36,255}",
    r"github_pat_[A-Za-z0-9_]{22,255}",
    r"glpat-[A-Za-z0-9_-]{20,64}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,250}",  # Slack
    r"xapp-\d-[A-Za-z0-9-]{20,250}",
    r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",  # Google
    r"[srp]k_live_[A-Za-z0-9]{16,120}",  # Stripe
    r"sk-(?:proj-|ant-|svcacct-)[A-Za-z0-9_-]{20,250}",
    r"sk-[A-Za-z0-9]{48}(?![A-Za-z0-9])",
    r"hf_[A-Za-z]{34}(?![A-Za-z0-9])",
    r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])",
    r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,250}",
    r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",  # SendGrid
    r"eyJ[A-Za-z0-9_-]{10,4000}\.eyJ[A-Za-z0-9_-]{4,4000}\.[A-Za-z0-9_-]{16,1000}",  # JWT
)
_TOKEN = re.compile(rf"(?<![A-Za-z0-9_-])(?:{'|'.join(_FORMS)})")
_ASSIGNED = re.compile(
    r"(?:aws_secret_access_key|secretaccesskey|aws_secret_key)[\"']?\s{0,4}[=:]\s{0,4}[\"']?"
    r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    re.IGNORECASE,
)
_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")

MAY_BE_SECRET = (
    r"(AKIA|ASIA)[A-Z0-9]{4}|gh[pousr]_[A-Za-z0-9]{4}|github_pat_|glpat-|xox[abeoprs]-|xapp-|AIza"
    r"|[srp]k_live_|sk-[A-Za-z0-9]{3}|hf_[A-Za-z]{4}|npm_[A-Za-z0-9]{4}|pypi-AgE|SG\.|eyJ"
    r"|(?i:aws_secret|secretaccesskey)|PRIVATE KEY"
)
"""RE2 pattern that every text with a secret matches."""


def secrets(text: str) -> Iterator[tuple[int, int]]:
    """Yields where secrets stand: (start, end)."""
    for found in _TOKEN.finditer(text):
        yield found.span()
    for found in _ASSIGNED.finditer(text):
        yield found.span(1)
    yield from _private_keys(text)


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Yields whole blocks; of one that doesn't end, what is left of the text."""
    begin = _BEGIN.search(text)
    while begin is not None:
        end = _END.search(text, begin.end())
        if end is None:
            yield begin.start(), len(text)
            return
        yield begin.start(), end.end()
        begin = _BEGIN.search(text, end.end())
