"""Another copy of a dataset's objects, from which damaged ones are restored.

Any store that holds objects under the same paths will do: a mirror, a backup, the bucket that a
folder was copied from. Nothing of it is trusted: bytes get their place only when they have the
digest that the version names.
"""

from __future__ import annotations

from datapipe.dataset.hashing import sha256_hex
from datapipe.dataset.objects import put_again, writing
from datapipe.errors import UnknownReferenceError, UsageError
from tiering.errors import ObjectNotFoundError, StoreError, StoreURLError
from tiering.store import BlockingStore, open_store

__all__ = ["Origin"]


class Origin:
    """Where sound copies come from; safe to share between threads."""

    def __init__(self, store: BlockingStore) -> None:
        self._store = store

    @classmethod
    def at(cls, url: str, *, dataset: str) -> Origin:
        """Returns the copy at a URL.

        Args:
            url: of the copy's root.
            dataset: printable URL of the dataset that is to be repaired.

        Raises:
            UnknownReferenceError: no store is known for the URL.
            UsageError: it is the dataset itself.
        """
        try:
            store = open_store(url).blocking()
        except StoreURLError as error:
            raise UnknownReferenceError(str(error)) from error
        if store.url == dataset:
            raise UsageError(
                f"{store.url} is the dataset itself; nothing was repaired; name another copy of it"
            )
        return cls(store)

    @property
    def url(self) -> str:
        """Where it is, printable."""
        return self._store.url

    def restore(self, store: BlockingStore, path: str, *, sha256: str | None) -> tuple[int, str]:
        """Writes the copy's object into `store`, atomically, once its digest is right.

        Returns:
            Its bytes, and why it wasn't done: "" where it was.

        Raises:
            SpaceError: there is no space for it.
            DatasetError: the store refuses.
        """
        if sha256 is None:
            return 0, "no digest of it is recorded, so no copy of it can be trusted"
        try:
            data = self._store.get(path)
        except ObjectNotFoundError:
            return 0, f"{self.url} doesn't have it"
        except StoreError as error:
            return 0, f"the copy can't be read: {error}"
        found = sha256_hex(data)
        if found != sha256:
            return 0, f"{self.url} has it damaged too: SHA-256 {found} ({len(data)} bytes)"
        with writing(store):
            put_again(store, path, data)
        return len(data), ""
