"""What a file is: by its name, and by its content where the name lies or says nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from datapipe.errors import InputError
from datapipe.read.arc import ARC
from datapipe.read.arrow_file import ARROW_MAGIC, is_arrow_stream
from datapipe.read.compressions import Compression, compression_of
from datapipe.read.damage import StreamDamage
from datapipe.read.input_file import InputFile
from datapipe.read.media_types import is_html
from datapipe.read.packages import need_package
from datapipe.read.records import RecordError, parse_json
from datapipe.read.streams import open_input, stream
from datapipe.read.tar_samples import is_tar
from datapipe.read.wiki_dump import WIKI_DUMP
from datapipe.recipe import FORMATS, FormatName
from tiering.store import View

__all__ = ["KNOWN_FORMATS", "Format", "Kind", "detect_format", "is_binary"]

Kind = FormatName | Literal["unsupported"]

KNOWN_FORMATS = (
    "JSON lines and arrays, CSV, TSV, Parquet, Arrow IPC, WARC, ARC, Wikipedia XML, tar, HTML, "
    "plain text; compressed with gzip, zstd, bzip2, xz or lz4"
)
"""For messages."""

_HEAD_BYTES = 1 << 16
_WARC = re.compile(rb"\s*WARC/\d\.")
_WITH_PAGES = {"arc", "html", "tar", "warc"}
_PARQUET_MAGIC = b"PAR1"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_PACKED = {".gz", ".gzip", ".zst", ".zstd", ".bz2", ".bz", ".xz", ".lzma", ".lz4"}
_KINDS: dict[str, Kind] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonlines": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".warc": "warc",
    ".wet": "warc",
    ".arc": "arc",
    ".tar": "tar",
    ".tgz": "tar",
    ".tbz2": "tar",
    ".txz": "tar",
    ".wat": "warc",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "tsv",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".xht": "html",
}
_SNIFFED = {"", ".txt", ".text", ".json", ".data", ".dat", ".part", ".out"}
"""Names that don't tell: what is in the file decides between JSON lines and text."""
_MAY_BE_JSON = {*_SNIFFED, ".jsonl", ".ndjson", ".jsonlines"}
_OF_LINES = {"jsonl", "csv", "tsv"}
_JSON_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*(?:\{|\]\s*$)")
_JSON_OBJECT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"')

_UNSUPPORTED_NAMES = {
    ".7z": "a 7-Zip archive",
    ".avro": "Avro",
    ".orc": "ORC",
    ".rar": "a RAR archive",
    ".xlsx": "a spreadsheet",
    ".zip": "a ZIP archive",
}
_UNSUPPORTED_MAGIC = {
    b"PK\x03\x04": "a ZIP archive",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"ORC": "ORC",
    b"Obj\x01": "Avro",
    b"PARE": "encrypted Parquet",
    b"%PDF-": "PDF",
    b"SQLite format 3\x00": "an SQLite database",
    b"\x89HDF\r\n\x1a\n": "HDF5",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """How to read a file."""

    kind: Kind
    """unsupported: it is known what it is, and that it can't be read; it becomes one quarantined
    record."""
    compression: Compression = "none"
    reason: str = ""
    """Of an unsupported one: what it is."""

    def __str__(self) -> str:
        return self.kind if self.compression == "none" else f"{self.kind}.{self.compression}"


def detect_format(file: InputFile, *, declared: str | None = None) -> Format:
    """Returns how to read `file`.

    Args:
        file: one input.
        declared: one of FORMATS, if the user says so; the compression is seen anyway.

    Raises:
        InputError: a file that was named can't be read by this version, or `declared` is unknown.
        FailedError: it can't be opened.
    """
    given = next((name for name in FORMATS if name == declared), None)
    if declared is not None and given is None:
        raise InputError(f"the format {declared!r} is unknown; known: {', '.join(FORMATS)}.")
    with open_input(file) as view:
        head = _bytes(view, _HEAD_BYTES)
        compression = compression_of(head)
        content = _content(view, compression) if compression != "none" else head
    if given is not None:
        found = Format(kind=given, compression=compression)
    else:
        found = _detect(file.relative, content, compression)
    if found.kind in _WITH_PAGES:
        need_package("resiliparse", "web pages")
    if file.named and found.kind == "text" and declared is None and is_binary(content):
        found = Format(kind="unsupported", reason="binary data of an unknown format")
    if found.kind == "unsupported" and file.named:
        raise InputError(
            f"{file.path} is {found.reason}, which this version can't read; known formats: "
            f"{KNOWN_FORMATS}. Convert it, or say `format:` in the recipe if that is wrong."
        )
    return found


def is_binary(head: bytes) -> bool:
    """Tells whether data that starts so isn't text in any encoding that is read."""
    return b"\0" in head and not head.startswith(_UTF16)


def _detect(name: str, content: bytes, compression: Compression) -> Format:
    suffix = _suffix(name)
    reason = _unsupported(content, suffix)
    if content.startswith(_PARQUET_MAGIC):
        if compression == "none":
            return Format(kind="parquet")
        reason = f"Parquet inside {compression}"
    if content.startswith(ARROW_MAGIC) or is_arrow_stream(content):
        if compression == "none":
            return Format(kind="arrow")
        reason = f"Arrow IPC inside {compression}"
    if content.startswith(b"FEA1"):
        reason = "Feather version 1"
    if _WARC.match(content):
        return Format(kind="warc", compression=compression)
    if is_tar(content):
        return Format(kind="tar", compression=compression)
    if ARC.match(content):
        return Format(kind="arc", compression=compression)
    if WIKI_DUMP.match(content):
        return Format(kind="wikipedia", compression=compression)
    if reason:
        return Format(kind="unsupported", compression=compression, reason=reason)
    kind = _KINDS.get(suffix) if content else _KINDS.get(suffix, "text")
    if kind in ("parquet", "arrow") and _is_json_lines(content, at_least=1):
        kind = "jsonl"
    if kind is None and suffix in _SNIFFED:
        at_least = 2 if suffix in (".txt", ".text") else 1
        kind = "jsonl" if _is_json_lines(content, at_least=at_least) else None
    if kind in (None, "jsonl") and suffix in _MAY_BE_JSON and _is_json(content, suffix):
        kind = "json"
    if kind is None and not suffix and is_html(content):
        kind = "html"
    return Format(kind=kind or "text", compression=compression)


def _unsupported(content: bytes, suffix: str) -> str:
    for magic, what in _UNSUPPORTED_MAGIC.items():
        if content.startswith(magic):
            return what
    if content.startswith(_UTF16) and _KINDS.get(suffix) in _OF_LINES:
        return "UTF-16, not UTF-8"
    return _UNSUPPORTED_NAMES.get(suffix, "")


def _suffix(name: str) -> str:
    """Returns the lower-case suffix that says what is inside a compression."""
    path = PurePosixPath(name.lower())
    return PurePosixPath(path.stem).suffix if path.suffix in _PACKED else path.suffix


def _is_json_lines(content: bytes, *, at_least: int) -> bool:
    """Tells whether the first lines are objects; of a file with fewer lines, all of them."""
    lines = [line for line in content.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    if len(content) >= _HEAD_BYTES:
        cut = len(lines) == 1
        lines = lines[:-1]
        if cut:
            return content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b'{"')
    return len(lines) >= at_least and all(map(_is_object, lines[: max(at_least, 2)]))


def _is_json(content: bytes, suffix: str) -> bool:
    """Tells whether this is an array of objects, or under .json an object over many lines."""
    if suffix == ".json":
        lines = _is_json_lines(content, at_least=1)
        return not lines and bool(_JSON_ARRAY.match(content) or _JSON_OBJECT.match(content))
    return suffix not in (".txt", ".text") and bool(_JSON_ARRAY.match(content))


def _is_object(line: bytes) -> bool:
    if line.lstrip()[:1] != b"{":
        return False
    try:
        return isinstance(parse_json(line), dict)
    except RecordError:
        return False


def _bytes(view: View, count: int) -> bytes:
    buffer = bytearray(min(count, view.size))
    return bytes(buffer[: view.read_into(memoryview(buffer), 0)])


def _content(view: View, compression: Compression) -> bytes:
    head = b""
    try:
        for chunk in stream(view, compression=compression):
            head += chunk
            if len(head) >= _HEAD_BYTES:
                break
    except StreamDamage:
        pass
    return head[:_HEAD_BYTES]
