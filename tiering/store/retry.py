"""Asking again: which failures, how often, how long, and what is said when it doesn't help."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tiering.errors import StoreError
from tiering.printable import printable_text
from tiering.store.client import Client, ShortBodyError
from tiering.store.failures import Failure, FailureKind, to_error
from tiering.store.options import Transfer
from tiering.store.throttle import ConcurrencyLimit

__all__ = ["Attempts"]

T = TypeVar("T")


class Attempts:
    """The attempts at one request of one client."""

    def __init__(
        self,
        client: Client,
        transfer: Transfer,
        limit: ConcurrencyLimit,
        *,
        doing: str,
        path: str,
        url: str,
    ) -> None:
        self._client = client
        self._transfer = transfer
        self._limit = limit
        self._doing = doing
        self._path = path
        self._url = url
        self._started = self._progress_at = time.monotonic()
        self._num = 0
        self._num_in_a_row = 0
        self._may_be_done = False

    @property
    def num(self) -> int:
        """Attempts that failed until now."""
        return self._num

    def progress(self) -> None:
        """Bytes came: patience starts anew."""
        self._num_in_a_row = 0
        self._progress_at = time.monotonic()

    async def run(self, request: Callable[[], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Returns what the request gives, asked again while that may help.

        Args:
            request: makes one attempt.
            seconds: most time for one attempt, where the client itself doesn't watch.

        Raises:
            StoreError: of the last failure's meaning.
        """
        while True:
            try:
                async with self._limit, asyncio.timeout(seconds):
                    result = await request()
            except StoreError:
                raise
            except Exception as error:
                failure = self._explain(error)
                cause = _cause_of(error, failure)
            else:
                self._limit.succeeded()
                return result
            refused = self._note(failure)
            if refused is not None:
                # Outside the handler, so that the client's own error, which may hold signed
                # URLs, isn't chained; its printable text is.
                raise refused from cause
            await asyncio.sleep(self._delay())

    def _explain(self, error: Exception) -> Failure:
        if isinstance(error, TimeoutError):
            return Failure(FailureKind.TIMED_OUT, "no answer in time")
        if isinstance(error, ShortBodyError):
            return Failure(FailureKind.INTERRUPTED, str(error))
        return self._client.explain(error)

    def _note(self, failure: Failure) -> StoreError | None:
        """Notes a failed attempt; returns the error to raise, None to try again."""
        earlier = self._may_be_done
        self._num += 1
        self._num_in_a_row += 1
        self._may_be_done = earlier or failure.kind.is_open
        if failure.kind is FailureKind.THROTTLED:
            self._limit.throttled()
        if failure.kind is FailureKind.EXPIRED:
            self._client.renew()
        if failure.kind.is_transient and not self._is_out_of_patience(failure):
            return None
        writes = self._doing == "writing"
        undecided = writes and (failure.kind.is_open or (earlier and _may_be_ours(failure)))
        return self._error(failure, undecided=undecided)

    def _error(self, failure: Failure, *, undecided: bool) -> StoreError:
        seconds = time.monotonic() - self._started
        spent = f"after {self._num} attempts in {seconds:.1f} s" if self._num > 1 else ""
        return to_error(
            failure,
            doing=self._doing,
            path=self._path,
            url=self._url,
            spent=spent,
            undecided=undecided,
        )

    def _is_out_of_patience(self, failure: Failure) -> bool:
        limits = self._transfer
        waited = time.monotonic() - self._progress_at
        unreachable = failure.kind is FailureKind.UNREACHABLE
        if failure.kind is FailureKind.EXPIRED:
            return self._num_in_a_row >= 2
        return (
            self._num_in_a_row >= limits.max_attempts
            or waited >= limits.max_retry_seconds
            or (unreachable and waited >= limits.unreachable_seconds)
        )

    def _delay(self) -> float:
        """Returns a random wait below a bound that doubles with each attempt in a row."""
        limits = self._transfer
        doubled = limits.first_delay_seconds * 2.0 ** min(self._num_in_a_row - 1, 32)
        return random.uniform(0.25, 1.0) * min(doubled, limits.max_delay_seconds)


def _may_be_ours(failure: Failure) -> bool:
    """Returns whether an earlier attempt that was carried out could cause this failure."""
    return failure.kind in (FailureKind.EXISTS, FailureKind.CHANGED) or failure.kind.is_transient


def _cause_of(error: Exception, failure: Failure) -> Exception:
    """Returns an error that says what `error` says, without what mustn't be printed."""
    text = str(error).split("\n\nDebug source:")[0]
    return RuntimeError(failure.detail or f"{type(error).__name__}: {printable_text(text)}")
