"""What every store must do, as a pytest class: subclass it and give a `store` fixture.

class TestMyStore(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        return MyStore(...)          # empty, a new one for each test
"""

from __future__ import annotations

import asyncio
import builtins
import io
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tiering.errors import ObjectExistsError, ObjectNotFoundError, PreconditionError
from tiering.store import BlockingStore, Mode, ObjectInfo, Store, ViewFile

__all__ = ["StoreConformance"]

BAD_PATHS = ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\0b"]
WRITERS = 8


class StoreConformance:
    """The promises of `BlockingStore` and `Store`, one test each."""

    @pytest.fixture
    def store(self) -> Store:
        """Returns the store under test, empty."""
        raise NotImplementedError("a subclass gives the store")

    @pytest.fixture
    def files(self, store: Store) -> BlockingStore:
        """Returns the blocking face of the store under test."""
        return store.blocking()

    # -- writing and reading

    @pytest.mark.parametrize("size", [0, 1, 4096, (1 << 20) + 17], ids=str)
    def test_get_returns_what_put_wrote(self, files: BlockingStore, size: int) -> None:
        data = _bytes(size)
        info = files.put("a/b/object", data)
        assert (info.path, info.size) == ("a/b/object", size)
        assert files.get("a/b/object") == data

    @pytest.mark.parametrize("kind", [bytearray, memoryview], ids=["bytearray", "memoryview"])
    def test_put_takes_any_buffer(
        self, files: BlockingStore, kind: Callable[[bytes], bytearray | memoryview]
    ) -> None:
        files.put("object", kind(b"bytes"))
        assert files.get("object") == b"bytes"

    def test_put_takes_a_view_of_wider_items(self, files: BlockingStore) -> None:
        files.put("object", np.arange(3, dtype="<u2").data)
        assert files.get("object") == b"\0\0\1\0\2\0"

    def test_head_agrees_with_put_and_list(self, files: BlockingStore) -> None:
        written = files.put("a/object", b"123")
        assert files.head("a/object").etag == written.etag
        assert files.head("a/object").size == 3
        assert [(i.path, i.etag) for i in files.list()] == [("a/object", written.etag)]

    def test_modified_seconds_is_about_now(self, files: BlockingStore) -> None:
        first = files.put("a", b"1").modified_seconds
        second = files.put("b", b"1").modified_seconds
        assert 1.6e9 < first <= second + 2

    @pytest.mark.parametrize("path", ["none", "folder", "object/below", "folder/none"])
    def test_what_is_not_there_is_not_found(self, files: BlockingStore, path: str) -> None:
        files.put("folder/object", b"1")
        files.put("object", b"1")
        reads: list[Callable[[str], object]] = [
            files.head, files.get, files.open, lambda p: files.get_range(p, 0, 1)
        ]  # fmt: skip
        for read in reads:
            with pytest.raises(ObjectNotFoundError, match=path):
                read(path)

    @pytest.mark.parametrize("path", BAD_PATHS, ids=repr)
    def test_bad_paths_are_refused_by_every_verb(self, files: BlockingStore, path: str) -> None:
        verbs: list[Callable[[str], object]] = [
            files.head, files.get, files.open, files.delete, lambda p: files.put(p, b"")
        ]  # fmt: skip
        for verb in verbs:
            with pytest.raises(ValueError, match="can't be an object's path"):
                verb(path)

    @pytest.mark.parametrize("prefix", ["/", "../", "a/../", "a//", "./"], ids=repr)
    def test_bad_prefixes_are_refused(self, files: BlockingStore, prefix: str) -> None:
        with pytest.raises(ValueError, match="can't begin an object's path"):
            builtins.list(files.list(prefix))

    # -- ranges and views

    @pytest.mark.parametrize(
        ("offset", "length", "expected"),
        [(0, 4, b"0123"), (6, 4, b"6789"), (8, 9, b"89"), (10, 1, b""), (99, 1, b""), (3, 0, b"")],
    )
    def test_ranges_end_with_the_object(
        self, files: BlockingStore, offset: int, length: int, expected: bytes
    ) -> None:
        files.put("object", b"0123456789")
        assert files.get_range("object", offset, length) == expected

    def test_ranges_come_in_the_order_asked(self, files: BlockingStore) -> None:
        files.put("object", b"0123456789")
        assert files.get_ranges("object", [(7, 2), (0, 3), (0, 3)]) == [b"78", b"012", b"012"]
        assert files.get_ranges("object", []) == []

    @pytest.mark.parametrize("wrong", [(-1, 2), (0, -2)], ids=str)
    def test_negative_ranges_are_refused(
        self, files: BlockingStore, wrong: tuple[int, int]
    ) -> None:
        files.put("object", b"0123456789")
        with pytest.raises(ValueError, match="negative"):
            files.get_range("object", *wrong)

    def test_a_view_fills_buffers(self, files: BlockingStore) -> None:
        files.put("object", b"0123456789")
        buffer = bytearray(4)
        with files.open("object") as view:
            assert view.size == 10
            assert view.read_into(memoryview(buffer), 3) == 4
            assert bytes(buffer) == b"3456"
            assert view.read_into(memoryview(buffer), 8) == 2
            assert bytes(buffer[:2]) == b"89"
            assert view.read_into(memoryview(b"").toreadonly(), 0) == 0

    def test_a_closed_view_is_an_error(self, files: BlockingStore) -> None:
        files.put("object", b"0123456789")
        view = files.open("object")
        view.close()
        view.close()
        with pytest.raises(ValueError, match="closed"):
            view.read_into(memoryview(bytearray(1)), 0)

    def test_a_view_outlives_overwrite_and_delete(self, files: BlockingStore) -> None:
        files.put("object", b"old")
        with files.open("object") as view:
            files.put("object", b"new!", mode=Mode.OVERWRITE)
            files.delete("object")
            buffer = bytearray(3)
            if view.fileno() is not None:
                assert view.read_into(memoryview(buffer), 0) == 3
                assert bytes(buffer) == b"old"

    def test_a_view_reads_as_a_file(self, files: BlockingStore) -> None:
        files.put("object", b"one\ntwo\nthree")
        with ViewFile(files.open("object")) as file:
            lines = io.BufferedReader(file).readlines()
            assert lines == [b"one\n", b"two\n", b"three"]

    def test_a_file_of_a_view_seeks(self, files: BlockingStore) -> None:
        files.put("object", b"0123456789")
        with ViewFile(files.open("object")) as file:
            assert (file.seek(-3, io.SEEK_END), file.read()) == (7, b"789")
            assert (file.seek(2), file.read(2), file.tell()) == (2, b"23", 4)
            assert (file.seek(99), file.read(1)) == (99, b"")
            with pytest.raises(ValueError, match="before the start"):
                file.seek(-1)

    # -- conditions

    def test_create_leaves_what_is_there(self, files: BlockingStore) -> None:
        files.put("object", b"first")
        with pytest.raises(ObjectExistsError, match="object is there already"):
            files.put("object", b"second")
        assert files.get("object") == b"first"

    def test_overwrite_replaces_and_creates(self, files: BlockingStore) -> None:
        first = files.put("object", b"first", mode=Mode.OVERWRITE)
        second = files.put("object", b"other", mode=Mode.OVERWRITE)
        assert files.get("object") == b"other"
        assert first.etag != second.etag == files.head("object").etag

    def test_many_overwrites_never_repeat_an_etag(self, files: BlockingStore) -> None:
        etags = [files.put("object", b"%03d" % n, mode=Mode.OVERWRITE).etag for n in range(50)]
        assert len(set(etags)) == 50

    def test_match_swaps_only_the_expected(self, files: BlockingStore) -> None:
        first = files.put("object", b"first")
        second = files.put("object", b"second", match=first.etag)
        assert files.get("object") == b"second"
        with pytest.raises(PreconditionError, match=r"object .*another writer"):
            files.put("object", b"third", match=first.etag)
        assert files.head("object").etag == second.etag

    def test_match_of_an_absent_object_fails(self, files: BlockingStore) -> None:
        with pytest.raises(PreconditionError, match="object"):
            files.put("object", b"bytes", match="any")
        assert [info.path for info in files.list()] == []

    def test_one_of_many_creates_succeeds(self, files: BlockingStore) -> None:
        won = _race(lambda n: files.put("race/object", b"%d" % n))
        assert len(won) == 1
        assert files.get("race/object") == b"%d" % won[0]

    def test_one_of_many_swaps_succeeds(self, files: BlockingStore) -> None:
        etag = files.put("object", b"start").etag
        won = _race(lambda n: files.put("object", b"%d" % n, match=etag))
        assert len(won) == 1
        assert files.get("object") == b"%d" % won[0]

    def test_swaps_count_without_losing_one(self, files: BlockingStore) -> None:
        files.put("counter", b"0")
        with ThreadPoolExecutor(4) as threads:
            builtins.list(threads.map(lambda _: _increment(files, times=5), range(4)))
        assert files.get("counter") == b"20"

    def test_readers_see_old_or_new_never_a_mixture(self, files: BlockingStore) -> None:
        files.put("object", b"0" * 100_000)
        done = threading.Event()

        def write() -> None:
            for n in range(20):
                files.put("object", b"%d" % (n % 10) * 100_000, mode=Mode.OVERWRITE)
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        while not done.is_set():
            data = files.get("object")
            assert data == data[:1] * 100_000
        writer.join()

    # -- listing and deleting

    def test_list_is_ascending_by_whole_path(self, files: BlockingStore) -> None:
        paths = ["a-b", "a.txt", "a/b", "a/b.c", "a/b/c", "a0", "b/a", "B", "z/\u00e4", "z/z"]
        for path in ["a/b/c", "a.txt", "z/\u00e4", "b/a", "z/z", "a-b", "B", "a0"]:
            files.put(path, b"")
        expected = sorted(set(paths) - {"a/b", "a/b.c"})
        assert [info.path for info in files.list()] == expected

    @pytest.mark.parametrize(
        ("prefix", "after", "expected"),
        [
            ("", "", ["a", "b/1", "b/2", "b/3/4", "ba", "c"]),
            ("b", "", ["b/1", "b/2", "b/3/4", "ba"]),
            ("b/", "", ["b/1", "b/2", "b/3/4"]),
            ("b/", "b/1", ["b/2", "b/3/4"]),
            ("b/", "b/15", ["b/2", "b/3/4"]),
            ("", "b/3", ["b/3/4", "ba", "c"]),
            ("", "b0", ["ba", "c"]),
            ("b/3", "", ["b/3/4"]),
            ("b/3/4", "", ["b/3/4"]),
            ("b/3/4", "b/3/4", []),
            ("d", "", []),
            ("d/e/", "", []),
            ("b/1/", "", []),
        ],
    )
    def test_list_by_prefix_and_after(
        self, files: BlockingStore, prefix: str, after: str, expected: list[str]
    ) -> None:
        for path in ["ba", "b/3/4", "b/2", "c", "a", "b/1"]:
            files.put(path, b"")
        assert [info.path for info in files.list(prefix, after=after)] == expected

    def test_an_empty_store_lists_nothing(self, files: BlockingStore) -> None:
        assert builtins.list(files.list()) == []
        assert builtins.list(files.list("any/")) == []

    def test_delete_removes_and_is_idempotent(self, files: BlockingStore) -> None:
        files.put("a/object", b"1")
        files.put("a/other", b"1")
        files.delete("a/object")
        files.delete("a/object")
        files.delete("never/there")
        files.delete("a")
        assert [info.path for info in files.list()] == ["a/other"]
        files.put("a/object", b"again")
        assert files.get("a/object") == b"again"

    def test_delete_many_removes_all_that_is_there(self, files: BlockingStore) -> None:
        for path in ["a/1", "a/2", "a/b/3", "c/4", "stays"]:
            files.put(path, b"1")
        files.delete_many(iter(["a/1", "a/b/3", "never/there", "a", "a/2", "a/2", "c/4"]))
        assert [info.path for info in files.list()] == ["stays"]
        files.put("a/b/3", b"again")
        assert files.get("a/b/3") == b"again"

    def test_delete_many_of_nothing_does_nothing(self, files: BlockingStore) -> None:
        files.delete_many([])
        files.delete_many(["never/there"])
        assert builtins.list(files.list()) == []

    def test_delete_many_refuses_bad_paths_and_removes_nothing(self, files: BlockingStore) -> None:
        files.put("a", b"1")
        with pytest.raises(ValueError, match="path"):
            files.delete_many(["a", "../a"])
        assert files.get("a") == b"1"

    # -- the async core

    def test_async_verbs_do_the_same(self, store: Store) -> None:
        async def use() -> None:
            info = await store.put("a/object", b"0123456789")
            assert await store.get("a/object") == b"0123456789"
            assert (await store.head("a/object")).etag == info.etag
            assert await store.get_range("a/object", 2, 3) == b"234"
            assert await store.get_ranges("a/object", [(0, 1), (9, 5)]) == [b"0", b"9"]
            assert [i.path async for i in store.list("a/")] == ["a/object"]
            with pytest.raises(ObjectExistsError, match="a/object"):
                await store.put("a/object", b"")
            await store.put("a/object", b"new", match=info.etag)
            await store.put("a/object", b"newer", mode=Mode.OVERWRITE)
            await store.delete("a/object")
            with pytest.raises(ObjectNotFoundError, match="a/object"):
                await store.get("a/object")
            await store.put("b", b"")
            await store.delete_many(["b", "a/object"])
            assert [i.path async for i in store.list()] == []

        asyncio.run(use())

    def test_async_list_goes_on_after_a_path(self, store: Store) -> None:
        async def use() -> list[str]:
            for path in ("a", "b", "c"):
                await store.put(path, b"")
            return [info.path async for info in store.list(after="a")]

        assert asyncio.run(use()) == ["b", "c"]

    def test_async_one_of_many_creates_succeeds(self, store: Store) -> None:
        async def use() -> list[ObjectInfo | BaseException]:
            puts = [store.put("object", b"%d" % n) for n in range(WRITERS)]
            return await asyncio.gather(*puts, return_exceptions=True)

        outcomes = asyncio.run(use())
        assert sum(isinstance(outcome, ObjectInfo) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, ObjectExistsError) for outcome in outcomes) == WRITERS - 1

    def test_both_faces_have_one_printable_url(self, store: Store) -> None:
        assert store.url == store.blocking().url
        assert "?" not in store.url
        assert "@" not in store.url


def _bytes(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


def _race(write: Callable[[int], object]) -> list[int]:
    """Returns which of the concurrent writers succeeded."""
    start = threading.Barrier(WRITERS)

    def attempt(number: int) -> bool:
        start.wait()
        try:
            write(number)
        except (ObjectExistsError, PreconditionError):
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as threads:
        outcomes = builtins.list(threads.map(attempt, range(WRITERS)))
    return [number for number, won in enumerate(outcomes) if won]


def _increment(files: BlockingStore, *, times: int) -> None:
    done = 0
    while done < times:
        etag = files.head("counter").etag
        value = int(files.get("counter"))
        try:
            files.put("counter", b"%d" % (value + 1), match=etag)
        except PreconditionError:
            continue
        done += 1
