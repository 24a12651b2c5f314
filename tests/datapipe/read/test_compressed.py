from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.errors import InputError
from datapipe.read.compressions import Compression, unpacked
from datapipe.read.damage import StreamDamage
from datapipe.read.gzip_stream import gunzip
from datapipe.read.zstd_stream import unzstd
from datapipe.testing import Reading

Read = Callable[..., Reading]
Unpack = Callable[[Iterator[bytes]], Iterator[bytes]]


def gz(data: bytes, level: int = 6) -> bytes:
    return gzip.compress(data, compresslevel=level, mtime=0)


def gz_with_header_fields(data: bytes) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile("a name.jsonl", "wb", fileobj=out, mtime=7) as file:
        file.write(data)
    return out.getvalue()


def zst(data: bytes, *, checksum: bool = False, size: bool = True, level: int = 3) -> bytes:
    packer = zstandard.ZstdCompressor(level=level, write_checksum=checksum, write_content_size=size)
    return packer.compress(data)


def zst_streamed(data: bytes) -> bytes:
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    return packer.compress(data) + packer.flush()


def zst_long(data: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=30)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packer.compress(data) + packer.flush()


def xz(data: bytes, *, check: int = lzma.CHECK_CRC64) -> bytes:
    return lzma.compress(data, lzma.FORMAT_XZ, check=check)


def xz_blocks(data: bytes) -> bytes:
    packer = lzma.LZMACompressor(lzma.FORMAT_XZ, check=lzma.CHECK_SHA256)
    return packer.compress(data) + packer.flush()


def alone(data: bytes) -> bytes:
    return lzma.compress(data, lzma.FORMAT_ALONE)


def lz4_frame(data: bytes, *, linked: bool = True, checksums: bool = False) -> bytes:
    packed: bytes = lz4.frame.compress(
        data,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=linked,
        content_checksum=checksums,
        block_checksum=checksums,
        store_size=checksums,
    )
    return packed


def skippable(data: bytes, number: int = 0) -> bytes:
    return bytes([0x50 + number, 0x2A, 0x4D, 0x18]) + len(data).to_bytes(4, "little") + data


LINES = b"".join(b'{"text":"number %d"}\n' % i for i in range(2000))
A, B = LINES[:20_000], LINES[20_000:]


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("a.jsonl.gz", gz(LINES)),
        ("a.jsonl.gz", gz(LINES, 0)),
        ("a.jsonl.gz", gz_with_header_fields(LINES)),
        ("a.jsonl.gz", gz(A) + gz(B)),
        ("a.jsonl.gz", gz(b"") + gz(A) + gz(b"") + gz(B) + gz(b"")),
        ("a.jsonl.gz", b"".join(gz(LINES[i : i + 999]) for i in range(0, len(LINES), 999))),
        ("a.jsonl.gz", gz(A) + b"\0" * 512 + gz(B) + b"\0" * 300_000),
        ("a.jsonl.zst", zst(LINES)),
        ("a.jsonl.zst", zst(LINES, checksum=True, size=False)),
        ("a.jsonl.zst", zst_streamed(LINES)),
        ("a.jsonl.zst", zst_long(LINES)),
        ("a.jsonl.zst", zst(A) + zst(B, checksum=True)),
        ("a.jsonl.zst", b"".join(zst(LINES[i : i + 999]) for i in range(0, len(LINES), 999))),
        ("a.jsonl.zst", skippable(b"head") + zst(A) + skippable(b"", 15) + zst(B) + skippable(A)),
        ("a.jsonl.zst", zst(b"") + zst(A) + zst(b"") + zst(B)),
        ("a.jsonl.zst", zst(LINES) + b"\0" * 100_000),
        ("a.jsonl.bz2", bz2.compress(LINES)),
        ("a.jsonl.bz2", bz2.compress(LINES, 1)),
        ("a.jsonl.bz2", bz2.compress(A) + bz2.compress(b"") + bz2.compress(B)),
        ("a.jsonl.bz2", b"".join(bz2.compress(LINES[i : i + 999]) for i in range(0, 56_000, 999))),
        ("a.jsonl.bz2", bz2.compress(b"") + bz2.compress(LINES) + b"\0" * 70_000),
        ("a.jsonl.xz", xz(LINES)),
        ("a.jsonl.xz", xz(LINES, check=lzma.CHECK_NONE)),
        ("a.jsonl.xz", xz_blocks(A) + xz(b"") + xz(B)),
        ("a.jsonl.xz", xz(A) + b"\0" * 8 + xz(B) + b"\0" * 4),
        ("a.jsonl.lzma", alone(LINES)),
        ("a.jsonl.lz4", lz4_frame(LINES)),
        ("a.jsonl.lz4", lz4_frame(LINES, linked=False, checksums=True)),
        ("a.jsonl.lz4", lz4_frame(A) + skippable(b"x") + lz4_frame(b"") + lz4_frame(B)),
        ("a.jsonl.lz4", skippable(b"head", 3) + lz4_frame(LINES) + b"\0" * 8),
        ("a.jsonl", gz(LINES)),
        ("a.jsonl", bz2.compress(LINES)),
        ("a.xz", lz4_frame(LINES)),
        ("a.jsonl", zst(LINES)),
        ("a.jsonl.gz", zst(LINES)),
        ("a.jsonl.zst", gz(LINES)),
        ("a.jsonl.gz", LINES),
        ("a", gz(LINES)),
        ("a.gz", zst(LINES)),
    ],
    ids=[
        "gzip",
        "stored",
        "header fields",
        "two members",
        "empty members",
        "members inside lines",
        "padding",
        "zstd",
        "checksum, no size",
        "streamed",
        "long window",
        "two frames",
        "frames inside lines",
        "skippable frames",
        "empty frames",
        "zstd padding",
        "bzip2",
        "bzip2, small blocks",
        "bzip2 streams",
        "bzip2 streams inside lines",
        "bzip2 padding",
        "xz",
        "xz without a check",
        "xz streams",
        "xz padding",
        "lzma",
        "lz4",
        "lz4, blocks on their own",
        "lz4 frames",
        "lz4 behind a skippable frame",
        "name says plain",
        "name says plain, bzip2",
        "name says xz, is lz4",
        "name says plain, zstd",
        "name says gzip, is zstd",
        "name says zstd, is gzip",
        "name says gzip, is plain",
        "no name",
        "only .gz",
    ],
)
def test_every_legal_shape_is_read(read: Read, name: str, packed: bytes) -> None:
    reading = read(name, packed)
    plain = read("plain.jsonl", LINES)
    assert (reading.texts, reading.places) == (plain.texts, plain.places)
    assert not reading.quarantined
    assert not reading.truncated


@pytest.mark.parametrize(
    "packed",
    [
        gz(b""),
        zst(b""),
        skippable(b"x"),
        b"",
        bz2.compress(b""),
        xz(b""),
        alone(b""),
        lz4_frame(b""),
        skippable(b"x") + lz4_frame(b""),
    ],
)
def test_nothing_packed_is_no_record(read: Read, packed: bytes) -> None:
    assert read("a.jsonl.gz", packed) == Reading()


def test_a_dictionary_that_isnt_there_is_damage(read: Read) -> None:
    dictionary = zstandard.train_dictionary(2000, [b"number %d" % i for i in range(3000)])
    packed = zstandard.ZstdCompressor(dict_data=dictionary).compress(LINES)
    reading = read("a.jsonl.zst", packed)
    assert (reading.errors, reading.truncated) == (["corrupt_zstd"], True)


@pytest.mark.parametrize("pack", [bytes, zst], ids=["plain", "compressed"])
def test_a_dictionary_before_the_frames_is_used(read: Read, pack: Callable[[bytes], bytes]) -> None:
    dictionary = zstandard.train_dictionary(2000, [b"number %d" % i for i in range(3000)])
    packer = zstandard.ZstdCompressor(dict_data=dictionary)
    packed = skippable(pack(dictionary.as_bytes()), 13) + packer.compress(A) + packer.compress(B)
    reading = read("a.jsonl.zst", packed)
    assert (reading.texts, reading.errors) == (read("plain.jsonl", LINES).texts, [])


@pytest.mark.parametrize(
    ("name", "packed", "garbage"),
    [
        ("a.jsonl.gz", gz(LINES), b"garbage"),
        ("a.jsonl.gz", gz(LINES) + b"\0\0", b"\x1f\x8b\x07 not a member"),
        ("a.jsonl.gz", gz(A) + gz(B), b'{"text":"plain"}\n'),
        ("a.jsonl.zst", zst(LINES), b"garbage"),
        ("a.jsonl.zst", zst(LINES), b"\0\0\0\0garbage"),
        ("a.jsonl.bz2", bz2.compress(LINES), b"garbage"),
        ("a.jsonl.xz", xz(A) + xz(B), b"garbage"),
        ("a.jsonl.lzma", alone(LINES), alone(LINES)),
        ("a.jsonl.lz4", lz4_frame(LINES), b"garbage"),
    ],
)
def test_garbage_behind_the_data_is_quarantined_and_the_data_is_whole(
    read: Read, name: str, packed: bytes, garbage: bytes
) -> None:
    reading = read(name, packed + garbage)
    assert reading.texts == read("plain.jsonl", LINES).texts
    (row,) = reading.quarantined
    assert (row["error"], row["raw"].lstrip(b"\0")) == ("trailing_garbage", garbage.lstrip(b"\0"))
    assert row["source_offset"] == len(LINES)
    assert reading.truncated


SMALL = b"".join(b'{"text":"%d"}\n' % (i * 7919 % 1000) for i in range(20))


def _unpack(compression: Compression) -> Unpack:
    return partial(unpacked, compression=compression)


PACKED: dict[str, tuple[bytes, Unpack]] = {
    "gzip": (gz(SMALL), gunzip),
    "gzip members": (gz(SMALL[:111]) + gz(SMALL[111:]), gunzip),
    "zstd": (zst(SMALL, checksum=True), unzstd),
    "zstd frames": (
        zst(SMALL[:111]) + skippable(b"x" * 9) + zst(SMALL[111:], checksum=True),
        unzstd,
    ),
    "bzip2": (bz2.compress(SMALL), _unpack("bz2")),
    "bzip2 streams": (bz2.compress(SMALL[:111]) + bz2.compress(SMALL[111:]), _unpack("bz2")),
    "xz": (xz(SMALL), _unpack("xz")),
    "xz streams": (xz(SMALL[:111]) + xz(SMALL[111:]), _unpack("xz")),
    "lzma": (alone(SMALL), _unpack("lzma")),
    "lz4": (lz4_frame(SMALL, checksums=True), _unpack("lz4")),
    "lz4 frames": (
        lz4_frame(SMALL[:111]) + skippable(b"x" * 9) + lz4_frame(SMALL[111:], checksums=True),
        _unpack("lz4"),
    ),
}
PACKINGS = pytest.mark.parametrize("packing", PACKED)


@PACKINGS
def test_every_cut_gives_exactly_the_whole_records_before_it(read: Read, packing: str) -> None:
    packed, _ = PACKED[packing]
    ends = _ends_of_members(packing)
    plain = read("plain.jsonl", SMALL)
    for cut in range(1 if packing != "lzma" else 13, len(packed)):  # an lzma file has no mark
        reading = read("a.jsonl.gz", packed[:cut])
        available = _available(packed[:cut], packing)
        num_whole = available.count(b"\n")
        if packing.startswith("lz4"):  # its decoder holds back what it has decoded
            num_whole = max(num_whole, len(reading.texts))
        assert reading.texts == plain.texts[:num_whole], cut
        assert reading.truncated == (cut not in ends or not available.endswith(b"\n")), cut
        assert len(reading.quarantined) == reading.truncated, cut


def _ends_of_members(packing: str) -> list[int]:
    head = SMALL[:111]
    packed: dict[str, Callable[[bytes], bytes]] = {
        "gzip members": gz,
        "zstd frames": zst,
        "bzip2 streams": bz2.compress,
        "xz streams": xz,
        "lz4 frames": lz4_frame,
    }
    end = len(packed[packing](head)) if packing in packed else 0
    return [end, end + 17] if packing in ("zstd frames", "lz4 frames") else [end]


def _decoder(packing: str) -> Any:
    kinds: dict[str, Callable[[], Any]] = {
        "gzip": lambda: zlib.decompressobj(31),
        "zstd": lambda: zstandard.ZstdDecompressor().decompressobj(),
        "bzip2": bz2.BZ2Decompressor,
        "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
        "lzma": lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE),
        "lz4": lz4.frame.LZ4FrameDecompressor,
    }
    return kinds[packing.split(" ")[0]]()


def _available(packed: bytes, packing: str) -> bytes:
    """What the plainest use of the library gives of a cut file."""
    output = b""
    while packed:
        if packed[1:4] == b"\x2a\x4d\x18":
            packed = packed[17:]
            continue
        decoder = _decoder(packing)
        output += decoder.decompress(packed)
        if packing.startswith("gzip"):
            output += decoder.flush()
        packed = decoder.unused_data or b""
    return output


@PACKINGS
@settings(max_examples=60, deadline=None)
@given(place=st.integers(0, 10_000), bit=st.integers(0, 7), size=st.integers(1, 50))
def test_a_flipped_bit_never_loses_the_records_before_it(
    packing: str, place: int, bit: int, size: int
) -> None:
    packed, unpack = PACKED[packing]
    place %= len(packed)
    broken = bytearray(packed)
    broken[place] ^= 1 << bit
    chunks = (bytes(broken[i : i + size]) for i in range(0, len(broken), size))
    output = b""
    try:
        for piece in unpack(chunks):
            output += piece
    except StreamDamage:
        pass
    before = _before(packing, place)
    assert output.startswith(before)


def _before(packing: str, place: int) -> bytes:
    """What can be had of the bytes before `place`; of most packings only what is in whole members.

    Their decoders give nothing at all in the call that meets the wrong bit.
    """
    if packing.startswith(("gzip", "zstd")):
        return _available(PACKED[packing][0][:place], packing) if place >= 4 else b""
    end = _ends_of_members(packing)[-1]
    return SMALL[:111] if 0 < end <= place else b""


_MEMBERS = st.lists(
    st.tuples(st.binary(max_size=40), st.sampled_from([gz, zst, zst_streamed, zst_long])),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(members=_MEMBERS, chunk_bytes=st.integers(1, 50))
def test_members_one_behind_the_other_give_their_contents_so(
    members: list[tuple[bytes, Callable[[bytes], bytes]]], chunk_bytes: int
) -> None:
    for unpack, packers in ((gunzip, [gz]), (unzstd, [zst, zst_streamed, zst_long])):
        mine = [(data, pack) for data, pack in members if pack in packers]
        packed = b"".join(pack(data) for data, pack in mine)
        chunks = (packed[i : i + chunk_bytes] for i in range(0, len(packed), chunk_bytes))
        assert b"".join(unpack(chunks)) == b"".join(data for data, _ in mine)


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 1000])
@PACKINGS
def test_the_size_of_chunks_doesnt_matter(packing: str, chunk_bytes: int) -> None:
    packed, unpack = PACKED[packing]
    chunks = (packed[i : i + chunk_bytes] for i in range(0, len(packed), chunk_bytes))
    assert b"".join(unpack(chunks)) == SMALL


@pytest.mark.parametrize(
    ("packed", "unpack", "error"),
    [
        (gz(LINES)[:-8] + b"\1" * 8, gunzip, "corrupt_gzip"),
        (zst(LINES, checksum=True)[:-4] + b"\1" * 4, unzstd, "corrupt_zstd"),
    ],
    ids=["gzip", "zstd"],
)
def test_a_wrong_checksum_is_damage_behind_all_the_data(
    packed: bytes, unpack: Unpack, error: str
) -> None:
    output: list[bytes] = []
    with pytest.raises(StreamDamage, match="damaged") as caught:
        output.extend(unpack(iter([packed])))
    assert (b"".join(output), caught.value.error) == (LINES, error)


def test_records_before_a_wrong_checksum_are_read(read: Read) -> None:
    for packed in (gz(LINES)[:-8] + b"\1" * 8, zst(LINES, checksum=True)[:-4] + b"\1" * 4):
        reading = read("a.jsonl.gz", packed)
        assert len(reading.texts) == 2000
        assert len(reading.quarantined) == 1


@pytest.mark.parametrize("pack", [gz, zst, bz2.compress, xz, lz4_frame])
def test_a_bomb_costs_no_memory(read: Read, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(b'{"text":"' + b" " * 20_000_000 + b'"}\n{"text":"after"}\n')
    tracemalloc.start()
    reading = read("a.jsonl.gz", packed, max_record_bytes=1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (reading.texts, reading.errors) == (["after"], ["record_too_large"])
    assert peak < 16_000_000


@PACKINGS
def test_of_a_damaged_member_and_behind_it_nothing_is_trusted(packing: str) -> None:
    packed, unpack = PACKED[packing]
    end = _ends_of_members(packing)[-1]
    broken = bytearray(packed)
    broken[end + (len(packed) - end) // 2] ^= 0x55
    with pytest.raises(StreamDamage, match="damaged") as caught:
        list(unpack(iter([bytes(broken)])))
    assert caught.value.error.startswith("corrupt_")
    assert caught.value.trusted == (111 if end else 0)


def test_lz4_without_its_library_names_the_package(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datapipe.read.packages.find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"without the package lz4.*datapipe-train\[build\]"):
        read("a.jsonl.lz4", lz4_frame(LINES))
