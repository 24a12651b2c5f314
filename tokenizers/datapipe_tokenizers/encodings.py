"""What a rank file doesn't carry: how text is split into words, and the special tokens.

Known by the names of published encodings; of any other it stands in `encoding.json`:

    {"version": 1, "name": "mine", "pattern": "...", "special_tokens": {"<|endoftext|>": 50256}}
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from datapipe_tokenizers.errors import (
    MissingPackageError,
    TokenizerFileError,
    TokenizerFormatError,
)

__all__ = [
    "KNOWN",
    "SCHEMES",
    "Encoding",
    "dump_encoding",
    "fetch_encoding",
    "import_tiktoken",
    "known_encoding",
    "parse_encoding",
]

_VERSION = 1

_R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SHORT}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SHORT}|\p{{N}}{{1,3}}{_REST}"
)
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*|\p{{N}}{_REST}"
)

SCHEMES = {_R50K: "gpt2", _CL100K: "gpt4", _O200K: "o200k", _TEKKEN: "nemotron"}
"""Pattern -> what gigatoken calls this way to split; whether it is the same is seen at load."""

_END = "<|endoftext|>"
_PROMPT = "<|endofprompt|>"
_FIM = {"<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260}


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoding:
    """How text is split into words, and the special tokens."""

    name: str
    pattern: str
    """Regular expression that finds the words, as tiktoken understands it."""
    special_tokens: dict[str, int] = field(default_factory=dict)
    num_ranks: int | None = None
    """How many lines the published rank file has."""


KNOWN = {
    encoding.name: encoding
    for encoding in (
        Encoding(name="r50k_base", pattern=_R50K, special_tokens={_END: 50256}, num_ranks=50_256),
        Encoding(name="p50k_base", pattern=_R50K, special_tokens={_END: 50256}, num_ranks=50_280),
        Encoding(
            name="cl100k_base",
            pattern=_CL100K,
            special_tokens={_END: 100257, **_FIM, _PROMPT: 100276},
            num_ranks=100_256,
        ),
        Encoding(
            name="o200k_base",
            pattern=_O200K,
            special_tokens={_END: 199999, _PROMPT: 200018},
            num_ranks=199_998,
        ),
    )
}
"""Published encodings whose rank files are known by their names."""


def import_tiktoken() -> Any:
    """Returns the package tiktoken.

    Raises:
        MissingPackageError: it isn't installed.
    """
    try:
        import tiktoken
    except ImportError as error:
        raise MissingPackageError(
            f"the package `tiktoken` can't be imported ({error}); rank files, encoding names and "
            "tekken.json can't be read without it. Run `pip install 'datapipe-train[build]'`"
        ) from error
    return tiktoken


def known_encoding(file_name: str) -> Encoding | None:
    """Returns the published encoding whose rank file has this name."""
    return KNOWN.get(file_name.removesuffix(".tiktoken"))


def fetch_encoding(name: str) -> tuple[dict[bytes, int], Encoding] | None:
    """Returns ranks and encoding of a name that tiktoken knows, None of another.

    tiktoken takes the ranks from its cache or fetches them.

    Raises:
        MissingPackageError: tiktoken isn't installed, and `name` is a published encoding.
        TokenizerFileError: the ranks aren't on this machine and can't be fetched.
    """
    try:
        library = import_tiktoken()
    except MissingPackageError:
        if name in KNOWN:
            raise
        return None
    if name not in library.list_encoding_names():
        return None
    try:
        found = library.get_encoding(name)
    except Exception as error:
        raise TokenizerFileError(
            f"the encoding {name} isn't on this machine and tiktoken can't fetch it "
            f"({type(error).__name__}); name its rank file {name}.tiktoken, or set "
            "TIKTOKEN_CACHE_DIR to a cache of tiktoken that holds it",
            path=name,
        ) from error
    specials = dict(sorted(found._special_tokens.items(), key=lambda item: item[1]))
    encoding = Encoding(name=name, pattern=found._pat_str, special_tokens=specials)
    return found._mergeable_ranks, encoding


def dump_encoding(encoding: Encoding) -> bytes:
    """Returns the encoding.json of `encoding`."""
    value = {
        "version": _VERSION,
        "name": encoding.name,
        "pattern": encoding.pattern,
        "special_tokens": encoding.special_tokens,
    }
    return json.dumps(value, indent=1, ensure_ascii=True).encode() + b"\n"


def parse_encoding(data: bytes) -> Encoding:
    """Returns what an encoding.json says; pattern and specials of a known name may be left out.

    Raises:
        TokenizerFormatError: not such a file.
    """
    try:
        value = json.loads(data)
    except ValueError as error:
        raise _malformed(f"it isn't JSON ({error})") from error
    if not isinstance(value, dict):
        raise _malformed("it isn't an object")
    if value.get("version", _VERSION) != _VERSION:
        raise _malformed(f"its version is {value['version']!r}, and {_VERSION} is known")
    known = KNOWN.get(str(value.get("name")))
    pattern = value.get("pattern", known.pattern if known else None)
    if not isinstance(pattern, str) or not pattern:
        raise _malformed(f"its `pattern` is {pattern!r}")
    specials = value.get("special_tokens", known.special_tokens if known else {})
    if not isinstance(specials, dict) or not all(
        name and type(number) is int for name, number in specials.items()
    ):
        raise _malformed("its `special_tokens` isn't an object of text -> id")
    return Encoding(
        name=str(value.get("name", "unnamed")), pattern=pattern, special_tokens=specials
    )


def _malformed(what: str) -> TokenizerFormatError:
    return TokenizerFormatError(
        f"encoding.json beside the ranks can't be used: {what}. It has to be "
        '{"version": 1, "name": ..., "pattern": REGULAR EXPRESSION, "special_tokens": {TEXT: ID}}'
    )
