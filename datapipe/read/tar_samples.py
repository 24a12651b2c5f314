"""tar archives as WebDataset writes them: members of one key are a sample, its text a document.

A member `folder/000017.meta.json` has the key `folder/000017` and the extension `meta.json`. Of a
sample, `txt` (or `text`, `md`), `html` (or `htm`) or the text field of `json` is the text, in this
order; `json` gives the attributes. `jsonl` is read line by line. Other members are passed over.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from datapipe.read.byte_source import ByteSource
from datapipe.read.charsets import decoded_page
from datapipe.read.damage import RAW_LIMIT_BYTES, StreamDamage
from datapipe.read.gathering import Gathered
from datapipe.read.media_types import HTML
from datapipe.read.records import Record, RecordError, attribute, parse_json, read_record
from datapipe.read.results import Origin, ReadResult
from datapipe.recipe import FieldPath, Fields

__all__ = ["is_tar", "read_tar"]

_BLOCK = 512
_MOST_EXTRA_BYTES = 1 << 20  # of a member that holds another one's long name or attributes
_EXTRA = {tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE}
_TEXT, _PAGE, _JSON, _LINES = ("txt", "text", "md"), ("html", "htm"), ("json",), ("jsonl",)
_READ = (*_TEXT, *_PAGE, *_JSON, *_LINES)


def is_tar(head: bytes) -> bool:
    """Tells whether a file that starts so is a tar archive, by its mark or its checksum."""
    if len(head) < _BLOCK:
        return False
    if head[257:262] == b"ustar":
        return True
    try:
        tarfile.TarInfo.frombuf(head[:_BLOCK], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return head[:1] != b"\0"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Member:
    key: str
    extension: str
    offset: int
    """Of its content in the uncompressed stream."""
    size: int
    data: bytes | None
    """None: it is passed over, or too long."""


@dataclass(slots=True)
class _Sample:
    key: str
    members: dict[str, _Member] = field(default_factory=dict)


def read_tar(
    chunks: Iterator[bytes],
    *,
    origin: Origin,
    fields: Fields,
    batch_bytes: int,
    max_record_bytes: int,
) -> Iterator[ReadResult]:
    """Yields the documents of a tar archive.

    Args:
        chunks: the uncompressed stream.
        origin: what all records share.
        fields: where text and attributes stand in JSON members.
        batch_bytes: about how many bytes of members go into one batch.
        max_record_bytes: a longer member is quarantined.
    """
    source = ByteSource(chunks=chunks, ended=_truncated)
    gathered = Gathered()
    adder = _Adder(fields.paths(), gathered, max_record_bytes)
    sample = _Sample("")
    try:
        for member in _members(source, max_record_bytes):
            if member.key != sample.key:
                adder.add(sample)
                sample = _Sample(member.key)
            sample.members.setdefault(member.extension, member)
            if gathered.size_bytes >= batch_bytes:
                yield gathered.result(origin)
                gathered.clear()
        adder.add(sample)
    except StreamDamage as damage:
        gathered.end_with(source.damage or damage, offset=source.offset)
    yield gathered.result(origin)


def _members(source: ByteSource, most: int) -> Iterator[_Member]:
    """Yields the regular members. Raises: StreamDamage: the archive ends before its end."""
    long_name: str | None = None
    while block := source.peek(_BLOCK):
        if len(block) < _BLOCK:
            raise _truncated()
        if not block.strip(b"\0"):
            return  # two such blocks are the end; what is behind it is padding
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise _corrupt(source, str(error)) from error
        if info.size < 0:
            raise _corrupt(source, "a member has a negative size")
        source.take(_BLOCK)
        padding = -info.size % _BLOCK
        if info.type in _EXTRA and info.size <= _MOST_EXTRA_BYTES:
            long_name = _name_in(info.type, source.take(info.size)) or long_name
        elif not info.isreg():
            source.skip(info.size if info.type not in _WITHOUT_DATA else 0)
            padding = padding if info.type not in _WITHOUT_DATA else 0
            long_name = None
        else:
            name, long_name = long_name or info.name, None
            yield _member(source, name, info.size, most)
        source.skip(min(padding, len(source.peek(padding))))
    if source.damage is not None:
        raise source.damage


_WITHOUT_DATA = {tarfile.DIRTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE}
_WITHOUT_DATA |= {tarfile.BLKTYPE, tarfile.FIFOTYPE}


def _member(source: ByteSource, name: str, size: int, most: int) -> _Member:
    path = PurePosixPath(name)
    stem, _, extension = path.name.partition(".")
    extension = extension.lower().rpartition(".")[2]
    offset = source.offset
    is_wanted = extension in _READ and not path.name.startswith(".")
    data = None
    if is_wanted and size <= most:
        data = source.take(size)
    else:
        source.skip(size)
    return _Member(
        key=str(path.parent / stem),
        extension=extension if is_wanted else "",
        offset=offset,
        size=size,
        data=data,
    )


def _name_in(kind: bytes, data: bytes) -> str | None:
    """Returns the long name that a member holds for the next one."""
    if kind == tarfile.GNUTYPE_LONGNAME:
        return data.rstrip(b"\0").decode("utf-8", "surrogateescape")
    if kind == tarfile.XHDTYPE:
        for line in data.split(b"\n"):
            _, _, pair = line.partition(b" ")
            if pair.startswith(b"path="):
                return pair[5:].decode("utf-8", "surrogateescape")
    return None


class _Adder:
    def __init__(self, paths: Mapping[str, FieldPath], gathered: Gathered, most: int) -> None:
        self._paths = paths
        self._gathered = gathered
        self._most = most

    def add(self, sample: _Sample) -> None:
        """Takes in what a sample holds of text; one without any is no record."""
        if not sample.members:
            return
        for extension in _LINES:
            if extension in sample.members:
                self._add_lines(sample.members[extension])
        for extension in (*_TEXT, *_PAGE, *_JSON):
            if extension in sample.members:
                self._add_text(sample, sample.members[extension])
                return
        self._gathered.blank_lines += not any(name in sample.members for name in _LINES)

    def _add_text(self, sample: _Sample, member: _Member) -> None:
        try:
            record = self._record(sample, member)
        except RecordError as error:
            self._refuse(member, error)
            return
        media_type = HTML if member.extension in _PAGE else None
        self._gathered.add(record, offset=member.offset, length=member.size, media_type=media_type)
        self._gathered.size_bytes += member.size

    def _record(self, sample: _Sample, member: _Member) -> Record:
        if member.data is None:
            detail = f"the member has {member.size:,} bytes, {self._most:,} are allowed"
            raise RecordError("record_too_large", detail)
        if member.extension in _JSON:
            found = read_record(member.data.strip(), self._paths)
            return found if found.id is not None else _named(found, sample.key)
        described = sample.members.get("json")
        values = parse_json(described.data.strip()) if described and described.data else None
        text = decoded_page(member.data) if member.extension in _PAGE else _decoded(member.data)
        return Record(
            text=text,
            id=attribute(values, self._paths["id"], keep_all=True) or sample.key,
            url=attribute(values, self._paths["url"]),
            date=attribute(values, self._paths["date"]),
            language=attribute(values, self._paths["language"]),
        )

    def _add_lines(self, member: _Member) -> None:
        place = member.offset
        for line in (member.data or b"").split(b"\n"):
            if line.strip():
                try:
                    record = read_record(line.rstrip(b"\r"), self._paths)
                    self._gathered.add(record, offset=place, length=len(line.rstrip(b"\r")))
                except RecordError as error:
                    self._gathered.refuse(line, error, offset=place)
            place += len(line) + 1
        if member.data is None:
            detail = f"the member has {member.size:,} bytes, {self._most:,} are allowed"
            self._refuse(member, RecordError("record_too_large", detail))
        self._gathered.size_bytes += member.size

    def _refuse(self, member: _Member, error: RecordError) -> None:
        raw = (member.data or b"")[:RAW_LIMIT_BYTES]
        self._gathered.refuse(raw, error, offset=member.offset, length=member.size)


def _named(record: Record, key: str) -> Record:
    return Record(
        text=record.text, id=key, url=record.url, date=record.date, language=record.language
    )


def _decoded(data: bytes) -> str:
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        detail = f"byte {error.start} of the member isn't UTF-8"
        raise RecordError("invalid_utf8", detail) from error


def _truncated() -> StreamDamage:
    return StreamDamage("truncated_tar", "the file ends inside a tar member", truncated=True)


def _corrupt(source: ByteSource, reason: str) -> StreamDamage:
    detail = f"the tar archive is damaged at byte {source.offset:,}: {reason}"
    raw = source.peek(_BLOCK)
    return StreamDamage("corrupt_tar", detail, raw=raw, truncated=True)
