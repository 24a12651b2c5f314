"""A tokenizer.json whose reserved tokens no text can produce.

Hugging Face's `encode_special_tokens` keeps special tokens from being found in a text as a whole.
Where such a token also is a piece of the model's vocabulary (Unigram; BPE with merges that lead to
it or with `ignore_merges`; WordPiece and WordLevel on an unsplit word), the model still finds it:
T5 encodes the text "</s>" as its end-of-text id. Here the piece itself is taken out of reach; all
ids of the model's vocabulary stay what they were.
"""

from __future__ import annotations

from typing import Any

__all__ = ["close_tokens", "mark_special"]

Config = dict[str, Any]


def mark_special(config: Config, names: frozenset[str]) -> Config:
    """Returns `config` with those added tokens special that are called `names`, and no others."""
    added = [
        token | {"special": token["content"] in names} for token in config.get("added_tokens") or []
    ]
    return config | {"added_tokens": added}


def close_tokens(config: Config, names: frozenset[str]) -> Config:
    """Returns `config` with the pieces called `names` out of the model's reach.

    The unknown token stays as it is. Added tokens that the model's vocabulary no longer has get
    other ids when the result is loaded.
    """
    model: Config = config["model"]
    if isinstance(model["vocab"], list):  # Unigram, which the type need not say
        closed = _close_unigram(model, names)
    else:
        closed = _close_dictionary(model, names - {model.get("unk_token")})
    return config | {"model": closed}


def _close_unigram(model: Config, names: frozenset[str]) -> Config:
    # The search walks at least one byte, so an empty piece is never found.
    unknown = model.get("unk_id")
    vocab = [
        ["", score] if piece in names and number != unknown else [piece, score]
        for number, (piece, score) in enumerate(model["vocab"])
    ]
    return model | {"vocab": vocab}


def _close_dictionary(model: Config, names: frozenset[str]) -> Config:
    # Renamed, not removed: the number of pieces decides which ids added tokens get. A piece of
    # several characters is only reached by a merge or as one whole word, and no word has spaces.
    vocab = {
        f" closed {number} " if piece in names else piece: number
        for piece, number in model["vocab"].items()
    }
    closed = model | {"vocab": vocab}
    if "merges" in model:
        prefix = model.get("continuing_subword_prefix") or ""
        closed["merges"] = [
            merge for merge in model["merges"] if names.isdisjoint(_merged(merge, prefix))
        ]
    return closed


def _merged(merge: str | list[str], prefix: str) -> tuple[str, str, str]:
    """Both parts of a merge and what they become."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right, left + right.removeprefix(prefix)
