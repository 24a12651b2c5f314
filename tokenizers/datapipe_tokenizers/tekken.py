"""Mistral's tekken.json: ranks, a pattern, and special tokens in front of them."""

from __future__ import annotations

import base64
import json
from typing import Any

from datapipe_tokenizers.encodings import Encoding
from datapipe_tokenizers.errors import TokenizerFormatError
from datapipe_tokenizers.tiktoken import RankModel

__all__ = ["tekken_model"]

_EOS = "</s>"
_DEFAULT_SPECIALS = (
    *("<unk>", "<s>", _EOS, "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]"),
    *("[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    "[TOOL_CONTENT]",
)
"""What files of the first versions mean, which don't list theirs."""


def tekken_model(data: bytes) -> RankModel:
    """Returns the tokenizer of a tekken.json.

    The first ids are special tokens; the id of a token is its rank plus their number. Of the
    ranks only those are used that the file's vocabulary size has room for.

    Raises:
        TokenizerFormatError: not such a file.
        MissingPackageError: tiktoken isn't installed.
    """
    try:
        value = json.loads(data)
        config = value["config"]
        num_specials = int(config["default_num_special_tokens"])
        num_ranks = int(config["default_vocab_size"]) - num_specials
        ranks = {
            base64.b64decode(entry["token_bytes"], validate=True): entry["rank"] + num_specials
            for entry in value["vocab"]
            if entry["rank"] < num_ranks
        }
        specials = _specials(value.get("special_tokens"), num_specials)
        pattern = str(config["pattern"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TokenizerFormatError(
            f"tekken.json can't be read ({type(error).__name__}: {error}); the file is damaged or "
            "of a version that isn't known. Fetch it again"
        ) from error
    if sorted(ranks.values()) != list(range(num_specials, num_specials + num_ranks)):
        raise TokenizerFormatError(
            f"tekken.json has {len(ranks):,} tokens where its vocabulary size says {num_ranks:,}; "
            "the file is damaged. Fetch it again"
        )
    encoding = Encoding(name="tekken", pattern=pattern, special_tokens=specials)
    return RankModel(ranks=ranks, encoding=encoding, format="tekken.json", eos=_EOS)


def _specials(listed: list[dict[str, Any]] | None, count: int) -> dict[str, int]:
    if listed is None:
        names = {name: number for number, name in enumerate(_DEFAULT_SPECIALS[:count])}
    else:
        names = {str(entry["token_str"]): int(entry["rank"]) for entry in listed}
    return names | {f"<SPECIAL_{number}>": number for number in range(len(names), count)}
