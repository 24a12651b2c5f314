"""What went wrong with a request, as seen by a store's client, and the error that it becomes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tiering.errors import (
    AccessDeniedError,
    NoSpaceError,
    ObjectExistsError,
    ObjectNotFoundError,
    PreconditionError,
    StoreError,
    ThrottledError,
    UndecidedError,
)

__all__ = ["BeyondEndError", "Failure", "FailureKind", "kind_of_answer", "to_error"]


class FailureKind(Enum):
    """What a failed request means."""

    NOT_FOUND = "not found"
    EXISTS = "exists"
    CHANGED = "changed"
    """A condition on the etag wasn't met."""
    DENIED = "denied"
    EXPIRED = "expired"
    """Credentials were good once; new ones may help."""
    NO_SPACE = "no space"
    THROTTLED = "throttled"
    """Refused, not carried out; asked to slow down."""
    CONFLICT = "conflict"
    """Refused, not carried out: another request on the same object is under way."""
    SERVER = "server"
    """The server failed; whether it carried the request out is open."""
    UNREACHABLE = "unreachable"
    """No connection came about, so nothing was sent."""
    INTERRUPTED = "interrupted"
    """The connection broke; whether the request was carried out is open."""
    TIMED_OUT = "timed out"
    """Nothing came for too long; whether the request was carried out is open."""
    BEYOND_END = "beyond the end"
    """A range starts at or behind the object's end."""
    OTHER = "other"

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self in _TRANSIENT

    @property
    def is_open(self) -> bool:
        """Whether a request that failed like this may have been carried out."""
        return self in _OPEN


_OPEN = frozenset({FailureKind.SERVER, FailureKind.INTERRUPTED, FailureKind.TIMED_OUT})
_TRANSIENT = _OPEN | {
    FailureKind.THROTTLED,
    FailureKind.CONFLICT,
    FailureKind.UNREACHABLE,
    FailureKind.EXPIRED,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed request."""

    kind: FailureKind
    reason: str
    """A few words, printable: "503 SlowDown"."""
    detail: str = ""
    """All that the client's library said, printable; empty: its words hold no address."""


class BeyondEndError(StoreError):
    """A range starts at or behind the object's end; stores answer it with no bytes."""


_BY_CODE = {
    "ExpiredToken": FailureKind.EXPIRED,
    "ExpiredTokenException": FailureKind.EXPIRED,
    "TokenRefreshRequired": FailureKind.EXPIRED,
    "RequestTimeout": FailureKind.TIMED_OUT,
    "SlowDown": FailureKind.THROTTLED,
    "QuotaExceeded": FailureKind.NO_SPACE,
    "ConditionalRequestConflict": FailureKind.CONFLICT,
    "OperationAborted": FailureKind.CONFLICT,
}
_BY_STATUS = {
    401: FailureKind.DENIED,
    403: FailureKind.DENIED,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.TIMED_OUT,
    409: FailureKind.CONFLICT,
    412: FailureKind.CHANGED,
    416: FailureKind.BEYOND_END,
    429: FailureKind.THROTTLED,
    503: FailureKind.THROTTLED,
    507: FailureKind.NO_SPACE,
}


def kind_of_answer(status: int, code: str | None) -> FailureKind:
    """Returns what an HTTP status of 300 or more and a code in its body mean."""
    if code in _BY_CODE:
        return _BY_CODE[code]
    return _BY_STATUS.get(status, FailureKind.SERVER if status >= 500 else FailureKind.OTHER)


_ADVICE = {
    FailureKind.DENIED: "check credentials, endpoint and permissions",
    FailureKind.EXPIRED: "renew the credentials",
    FailureKind.NO_SPACE: "free space or raise the quota",
    FailureKind.THROTTLED: "use fewer readers, or try again later",
    FailureKind.CONFLICT: "another writer is busy with it; try again",
    FailureKind.UNREACHABLE: "check the endpoint and the network",
}
_TYPES: dict[FailureKind, type[StoreError]] = {
    FailureKind.DENIED: AccessDeniedError,
    FailureKind.EXPIRED: AccessDeniedError,
    FailureKind.NO_SPACE: NoSpaceError,
    FailureKind.THROTTLED: ThrottledError,
    FailureKind.CONFLICT: ThrottledError,
    FailureKind.BEYOND_END: BeyondEndError,
}


def to_error(
    failure: Failure, *, doing: str, path: str, url: str, spent: str = "", undecided: bool = False
) -> StoreError:
    """Returns the error of a failure's meaning.

    Args:
        failure: the last one.
        doing: the verb: "reading", "writing" ...
        path: the object; empty for a listing.
        url: the store's, printable.
        spent: what was tried before: "after 3 attempts in 2.1 s"; empty: one attempt.
        undecided: the request may have been carried out.
    """
    where = f"{path or 'the store'} in {url}"
    if undecided:
        return UndecidedError(
            f"{doing} {where} got no clear answer{_and(spent)}: {failure.reason}; it may or may "
            "not have been carried out; read it back before deciding",
            path=path,
        )
    if failure.kind is FailureKind.NOT_FOUND and doing != "writing":
        return ObjectNotFoundError(f"there is no object {where} ({failure.reason})", path=path)
    if failure.kind is FailureKind.EXISTS:
        return ObjectExistsError(f"{path} is there already; it was left as it is", path=path)
    if failure.kind is FailureKind.CHANGED:
        return PreconditionError(
            f"{path} in {url} was changed by another writer ({failure.reason}); nothing was "
            "written; read it again and decide anew",
            path=path,
        )
    advice = _ADVICE.get(failure.kind, "see the reason given")
    outcome = "nothing was read" if doing == "reading" else "nothing was changed"
    return _TYPES.get(failure.kind, StoreError)(
        f"{doing} {where} failed{_and(spent)}: {failure.reason}; {outcome}; {advice}", path=path
    )


def _and(spent: str) -> str:
    return f" {spent}" if spent else ""
