"""Which token closes a document: the caller's, else the tokenizer's own word, else a known name.

The name is never guessed from tokens with another meaning: BERT's [SEP] separates sentences, so a
tokenizer that only has that needs `eos` from the caller.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches

from datapipe_tokenizers.errors import EndOfTextError, TokenizerFormatError
from datapipe_tokenizers.files import COMPANIONS
from datapipe_tokenizers.model import Model, Reference

__all__ = ["WELL_KNOWN", "check_eos", "choose_eos"]

WELL_KNOWN = (
    "<|endoftext|>",
    "<|end_of_text|>",
    "</s>",
    "<eos>",
    "<|eos|>",
    "<|end\N{LOWER ONE EIGHTH BLOCK}of\N{LOWER ONE EIGHTH BLOCK}sentence|>",
    "<\N{FULLWIDTH VERTICAL LINE}end\N{LOWER ONE EIGHTH BLOCK}of"
    "\N{LOWER ONE EIGHTH BLOCK}sentence\N{FULLWIDTH VERTICAL LINE}>",
    "<|endofdocument|>",
    "[EOS]",
    "<EOS>",
    "</eos>",
    "<EOT>",
)
"""Names that models gave their end-of-text token, looked for in this order."""

_REMEDY = "name one with `tokenize: {eos: TOKEN}` in the recipe, `--eos TOKEN`, or `eos=` in Python"


def choose_eos(
    eos: str | int | None,
    *,
    vocabulary: Mapping[str, int],
    specials: Mapping[str, int],
    files: Mapping[str, bytes],
    own: str | None = None,
) -> int:
    """Returns the id of the token that closes a document.

    In this order: `eos` (a token's text or its id), `eos_token` of tokenizer_config.json, then of
    special_tokens_map.json, then `own`, which the tokenizer's own file names, then the first of
    `WELL_KNOWN` that is a special token.

    Raises:
        EndOfTextError: there is none, or the one named isn't in the vocabulary.
    """
    if isinstance(eos, int):
        return _checked_id(eos, vocabulary)
    if eos is not None:
        return _named(eos, "the end-of-text token asked for", vocabulary, specials)
    for file in COMPANIONS:
        if declared := _declared(files, file):
            return _named(declared, f"eos_token of {file}", vocabulary, specials)
    for name in (own, *WELL_KNOWN):
        if name is not None and name in specials:
            return specials[name]
    raise EndOfTextError(
        "the tokenizer names no end-of-text token, so documents couldn't be told apart; "
        f"{_REMEDY}{_listing(specials)}"
    )


def check_eos(name: str, model: Model, encoder: Reference) -> None:
    """Refuses an end-of-text token that a document's own text contains.

    Raises:
        EndOfTextError: it does.
    """
    number = model.ids[name]
    ordinary = name not in model.added and encoder.produces(number)
    if ordinary or number == model.unknown_id:
        meaning = "is ordinary text" if ordinary else "also stands for unknown text"
        raise EndOfTextError(
            f"the end-of-text token `{name}` (id {number}) {meaning} for this tokenizer: documents "
            "that contain it would be cut there. Name a special token with "
            "`tokenize: {eos: TOKEN}` in the recipe or `--eos TOKEN`"
        )


def _checked_id(eos: int, vocabulary: Mapping[str, int]) -> int:
    if eos in vocabulary.values():
        return eos
    raise EndOfTextError(f"no token of this tokenizer has the id {eos}; {_REMEDY}")


def _named(
    name: str, origin: str, vocabulary: Mapping[str, int], specials: Mapping[str, int]
) -> int:
    if name in vocabulary:
        return vocabulary[name]
    near = get_close_matches(name, sorted(specials), n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(f'`{match}`' for match in near)}?" if near else ""
    raise EndOfTextError(
        f"{origin}, `{name}`, isn't in the vocabulary of {len(vocabulary):,} tokens; "
        f"{_REMEDY}{f'.{hint}' if hint else _listing(specials)}"
    )


def _declared(files: Mapping[str, bytes], file: str) -> str | None:
    """The `eos_token` that a companion file declares: a text, or an object with its `content`."""
    if file not in files:
        return None
    try:
        config = json.loads(files[file])
        token = config.get("eos_token")
        name = token.get("content") if isinstance(token, dict) else token
    except (ValueError, AttributeError) as error:
        raise TokenizerFormatError(
            f"{file} beside the tokenizer isn't a JSON object ({error}); its end-of-text token "
            "can't be read. Repair or remove the file"
        ) from error
    return name if isinstance(name, str) and name else None


def _listing(specials: Mapping[str, int]) -> str:
    if not specials:
        return ". It has no special tokens"
    names = sorted(specials, key=lambda name: specials[name])
    shown = ", ".join(f"`{name}`" for name in names[:12])
    return f". Its special tokens: {shown}" + (", ..." if len(names) > 12 else "")
