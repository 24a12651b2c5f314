from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from datapipe_tokenizers import EndOfTextError, Tokenizer, TokenizerFormatError, load, load_files
from datapipe_tokenizers.eos import choose_eos

SPECIALS = {"<|endoftext|>": 0, "</s>": 1, "<|stop|>": 2}
VOCABULARY = {**SPECIALS, "the": 3}


def choose(
    eos: str | int | None = None,
    *,
    config: object = None,
    special_map: object = None,
    specials: dict[str, int] = SPECIALS,
) -> int:
    contents = {"tokenizer_config.json": config, "special_tokens_map.json": special_map}
    files = {name: json.dumps(value).encode() for name, value in contents.items() if value}
    return choose_eos(eos, vocabulary=VOCABULARY, specials=specials, files=files)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (choose("</s>", config={"eos_token": "<|stop|>"}), 1),
        (choose(2), 2),
        (choose(config={"eos_token": "<|stop|>"}, special_map={"eos_token": "</s>"}), 2),
        (choose(config={"eos_token": {"content": "<|stop|>", "lstrip": False}}), 2),
        (choose(config={"eos_token": None}, special_map={"eos_token": "<|stop|>"}), 2),
        (choose(config={"model_max_length": 1}), 0),
        (choose(specials={"<|stop|>": 2, "</s>": 1}), 1),
    ],
    ids=["argument", "id", "config", "object", "special map", "known name", "second known name"],
)
def test_order_of_choice(chosen: int, expected: int) -> None:
    assert chosen == expected


def test_no_end_of_text_token_lists_what_there_is() -> None:
    match = r"names no end-of-text token.*`tokenize: \{eos: TOKEN\}`.*`--eos TOKEN`.*`\[SEP\]`"
    with pytest.raises(EndOfTextError, match=match):
        choose(specials={"[CLS]": 0, "[SEP]": 1})


def test_unknown_name_suggests_near_ones() -> None:
    with pytest.raises(
        EndOfTextError, match=r"asked for, `<endoftext>`, .* mean `<\|endoftext\|>`"
    ):
        choose("<endoftext>")


def test_unknown_name_of_the_config_says_where_it_stands() -> None:
    with pytest.raises(EndOfTextError, match=r"eos_token of tokenizer_config\.json, `<x>`"):
        choose(config={"eos_token": "<x>"})


def test_unknown_id() -> None:
    with pytest.raises(EndOfTextError, match="has the id 99"):
        choose(99)


def test_broken_config_is_named() -> None:
    with pytest.raises(
        TokenizerFormatError, match=r"tokenizer_config\.json .* isn't a JSON object"
    ):
        choose(config=[1])


def test_folder_tells_the_end_of_text_token(tmp_path: Path, bpe_json: bytes) -> None:
    (tmp_path / "tokenizer.json").write_bytes(bpe_json)
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}')
    assert load(tmp_path).eos_id == 0
    assert sorted(load(tmp_path).files) == ["tokenizer.json", "tokenizer_config.json"]


def test_ordinary_text_cannot_close_documents(bpe_json: bytes) -> None:
    with pytest.raises(EndOfTextError, match=r"`the` \(id \d+\) is ordinary text"):
        load_files({"tokenizer.json": bpe_json}, eos="the")


def test_unknown_token_cannot_close_documents(unigram_json: bytes) -> None:
    with pytest.raises(EndOfTextError, match="stands for unknown text"):
        load_files({"tokenizer.json": unigram_json}, eos="<unk>")


def test_added_token_that_is_not_special_is_reserved_once_it_closes_documents(
    edited_bpe: Callable[..., bytes],
) -> None:
    files = {"tokenizer.json": edited_bpe(added=(("<stop>", False),))}
    stop = 380
    assert stop in ids_of(load_files(files), "a <stop> b")
    tokenizer = load_files(files, eos="<stop>")
    assert tokenizer.eos_id == stop
    assert stop not in ids_of(tokenizer, "a <stop> b")
    assert tokenizer.decode(ids_of(tokenizer, "a <stop> b")) == "a <stop> b"


def ids_of(tokenizer: Tokenizer, text: str) -> list[int]:
    return [int(number) for number in tokenizer.encode_batch([text])[0]]
