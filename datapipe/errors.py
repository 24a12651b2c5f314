"""Every error that datapipe raises on purpose, as one tree.

    DatapipeError
    |- UsageError (ValueError)              the request can't be carried out as given: exit 2
    |  |- RecipeError                       a recipe says something unknown or contradictory
    |  |- InputError                        an input path, format or field that isn't there
    |  |- MissingExtraError (ImportError)   an optional part isn't installed
    |  |- UnknownReferenceError            a version, document, step or run that doesn't exist
    |  `- TokenizerMismatchError            dataset and tokenizer don't belong together
    |- FailedError (RuntimeError)           the request was right, carrying it out failed: exit 1
    |  |- DatasetError                      a dataset can't be opened or written
    |  |  |- DamagedError                   bytes aren't what their digest says
    |  |  |- RollbackError                  versions that were there are gone or others now
    |  |  |- SignatureError                 a version isn't signed as it should be
    |  |  `- StoreUnfitError                the store doesn't keep a promise that is needed
    |  |- GuardError                        a guard of the recipe stopped the build before commit
    |  `- ConservationError                 documents in != kept + dropped + quarantined
    |- ResumableError (RuntimeError)        partly done, nothing lost, run again: exit 3
    |  |- CommitConflictError               another writer committed first
    |  |- CommitUndecidedError              no answer: the version may or may not be there
    |  |- TransactionExpiredError           the writer was silent too long: objects may be gone
    |  `- SpaceError                        a disk is full
    |- OrderError (ValueError)              a spec of the sample order that can't be
    |  `- StateError                        a state that doesn't belong to this order
    `- LoadError (RuntimeError)             the stream can't deliver

A message has three parts: what happened, with the values; what follows; what to do.
"""

from __future__ import annotations

__all__ = [
    "CommitConflictError",
    "CommitUndecidedError",
    "ConservationError",
    "DamagedError",
    "DatapipeError",
    "DatasetError",
    "FailedError",
    "GuardError",
    "InputError",
    "LoadError",
    "MissingExtraError",
    "OrderError",
    "RecipeError",
    "ResumableError",
    "RollbackError",
    "SignatureError",
    "SpaceError",
    "StateError",
    "StoreUnfitError",
    "TokenizerMismatchError",
    "TransactionExpiredError",
    "UnknownReferenceError",
    "UsageError",
]


class DatapipeError(Exception):
    """Root of all errors raised on purpose; `exit_code` is what the command line returns."""

    exit_code: int = 1


class UsageError(DatapipeError, ValueError):
    """The request can't be carried out as given."""

    exit_code = 2


class RecipeError(UsageError):
    """A recipe says something unknown or contradictory."""


class InputError(UsageError):
    """An input path, format or field isn't there."""


class MissingExtraError(UsageError, ImportError):
    """An optional part of the distribution isn't installed."""


class UnknownReferenceError(UsageError):
    """A dataset, version, document, step or run that doesn't exist."""


class TokenizerMismatchError(UsageError):
    """Dataset and tokenizer don't belong together."""


class FailedError(DatapipeError, RuntimeError):
    """The request was right, but carrying it out failed."""


class DatasetError(FailedError):
    """A dataset can't be opened or written."""


class DamagedError(DatasetError):
    """Stored bytes aren't what their digest says."""


class RollbackError(DatasetError):
    """Versions that this user saw before are gone, or others stand in their place."""


class SignatureError(DatasetError):
    """A version isn't signed with a key, or what is signed isn't this version."""


class StoreUnfitError(DatasetError):
    """The store, or something in front of it, doesn't keep a promise that is needed."""


class GuardError(FailedError):
    """A guard of the recipe stopped the build before commit."""


class ConservationError(FailedError):
    """Documents in aren't the sum of kept, dropped and quarantined ones."""


class ResumableError(DatapipeError, RuntimeError):
    """Partly done and nothing lost: running the same command again completes it."""

    exit_code = 3


class CommitConflictError(ResumableError):
    """Another writer changed the same thing first."""


class CommitUndecidedError(ResumableError):
    """The store gave no answer: the version may or may not be there."""


class TransactionExpiredError(ResumableError):
    """A writer was silent for so long that its objects may have been removed."""


class SpaceError(ResumableError):
    """A disk is full."""


class OrderError(DatapipeError, ValueError):
    """A spec of the sample order that can't be."""

    exit_code = 2


class StateError(OrderError):
    """A stream state that doesn't belong to this order."""


class LoadError(DatapipeError, RuntimeError):
    """The stream can't deliver what was asked of it."""
