from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from datapipe.errors import RecipeError
from datapipe.recipe import Fields, bare_recipe, load_recipe, parse_size, starter_recipe

MINIMAL = "name: web\ninputs:\n  - {source: crawl, paths: [a.jsonl]}\n"


def test_a_minimal_recipe_has_every_default() -> None:
    recipe = load_recipe(MINIMAL)
    assert recipe.stages == []
    assert recipe.tokenize.append_eos
    assert recipe.output.shard_bytes == 64 << 20
    assert recipe.guards.max_quarantined_fraction == 0.001
    assert recipe.inputs[0].fields == Fields()
    assert recipe.sources == ["crawl"]


@pytest.mark.parametrize(
    ("tokenizer", "placed"),
    [("cl100k_base", "cl100k_base"), ("a.tiktoken", "{}/a.tiktoken"), ("folder", "{}/folder")],
    ids=["encoding", "file", "folder that is there"],
)
def test_a_tokenizer_is_a_path_or_the_name_of_an_encoding(
    tmp_path: Path, tokenizer: str, placed: str
) -> None:
    (tmp_path / "folder").mkdir()
    path = tmp_path / "recipe.yaml"
    path.write_text(f"{MINIMAL}tokenize: {{tokenizer: {tokenizer}}}\n")
    assert load_recipe(path).tokenize.tokenizer == placed.format(tmp_path)


def test_a_full_recipe_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(
        """\
name: web-en
inputs:
  - source: crawl
    paths: ["raw/*.jsonl.gz", /absolute/x.parquet]
    format: jsonl
    licence: CC0-1.0
    root: raw
    fields: {text: doc.text, id: key, url: u, date: crawled_at, language: lang}
  - {source: books, paths: books}
stages:
  - normalize: {unicode: none}
  - drop_empty
  - dedup_exact: {}
tokenize: {tokenizer: ./tokenizer.json, eos: "</s>", append_eos: false}
output: {shard_bytes: 1.5 KiB, shuffle_seed: 7}
guards: {max_quarantined_fraction: 1, max_dropped_fraction_per_source: 0.5}
"""
    )
    recipe = load_recipe(path)
    crawl, books = recipe.inputs
    assert crawl.paths == [f"{tmp_path}/raw/*.jsonl.gz", "/absolute/x.parquet"]
    assert (crawl.root, crawl.format, crawl.licence) == (f"{tmp_path}/raw", "jsonl", "CC0-1.0")
    assert crawl.fields.paths()["text"] == ("doc", "text")
    assert (books.paths, books.root) == ([f"{tmp_path}/books"], None)
    assert [(stage.name, stage.options) for stage in recipe.stages] == [
        ("normalize", {"unicode": "none", "control_characters": "strip"}),
        ("drop_empty", {}),
        ("dedup_exact", {}),
    ]
    assert recipe.tokenize.tokenizer == f"{tmp_path}/tokenizer.json"
    assert (recipe.output.shard_bytes, recipe.guards.max_quarantined_fraction) == (1536, 1)
    assert load_recipe(str(path)) == recipe


def test_the_starter_recipe_loads_as_it_is_and_does_what_a_bare_build_does() -> None:
    starter = load_recipe(starter_recipe())
    bare = bare_recipe(["data"], tokenizer="tokenizer.json", name="my-dataset")
    assert starter == bare


def test_every_commented_key_of_the_starter_recipe_is_a_key() -> None:
    loaded = load_recipe(re.sub(r"^( *)# (\w+:|  )", r"\1\2", starter_recipe(), flags=re.MULTILINE))
    assert (loaded.inputs[0].root, loaded.tokenize.eos) == ("data", "<|endoftext|>")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "name: a\ninput: []\n",
            r"^the recipe, line 2: `input` isn't a known key; did you mean `in",
        ),
        (
            MINIMAL + "guards: {max_quarantine: 1}\n",
            r"line 4: `max_quarantine` isn't a known key of"
            r" `guards`; did you mean `max_quarantined_fraction`\?",
        ),
        (
            MINIMAL + "stages:\n  - drop_empty\n  - dedupe_exact: {}\n",
            r"line 6: `dedupe_exact` isn't a known stage; did you mean `dedup_exact`\? "
            r"Known: extract_html, normalize, .*dedup_exact.*\.",
        ),
        (
            MINIMAL + "stages: [dedup_minhash]\n",
            "line 4: the stage `dedup_minhash` isn't in this ver",
        ),
        (MINIMAL + "stages:\n- normalize: {unicod: NFC}\n", "line 5: `unicod` .* mean `unicode`"),
        (MINIMAL + "stages:\n- drop_empty: {a: 1}\n", "line 5: `a` .* It has none"),
        (MINIMAL + "stages:\n- normalize: {unicode: NFD}\n", "line 5: .*'NFD'.* 'NFKC' or 'none'"),
        (MINIMAL + "stages:\n- {drop_empty: {}, normalize: {}}\n", "line 5: .* one name"),
        (MINIMAL + "stages: [drop_empty, drop_empty]\n", "line 4: .*drop_empty is there twice"),
        (
            MINIMAL + "stages: [drop_empty, {normalize: false}]\n",
            "line 4: .*false isn't the options of normalize; .* take the line out to leave the st",
        ),
        (MINIMAL + "stages: [{dedup_exact: true}]\n", "line 4: .*true isn't .* `- dedup_exact`"),
        (MINIMAL + "stages: [{dedup_exact: []}]\n", r"line 4: .*\[\] isn't the options of"),
        (MINIMAL + "guards: {allow_damaged: 1}\n", "line 4: `guards.allow_damaged` .*boolean"),
        (MINIMAL + "stages: [3]\n", "line 4: .*one name"),
        (MINIMAL + "output: {shard_bytes: 64XB}\n", "line 4: .*shard_bytes.*64XB.*like 64MiB"),
        (MINIMAL + "output: {shard_bytes: 1}\n", "line 4: .*greater than or equal to 1024"),
        (MINIMAL + "output: {shuffle_seed: 1.5}\n", "line 4: .*shuffle_seed"),
        (MINIMAL + "guards:\n  max_quarantined_fraction: .nan\n", "line 5: .*finite"),
        (MINIMAL + "tokenize: {append_eos: maybe}\n", "line 4: `tokenize.append_eos` .*boolean"),
        (MINIMAL + "tokenize: 5\n", "line 4: `tokenize`"),
        (MINIMAL.replace("name: web\n", "\n"), "the key `name` is missing"),
        ("name: a\ninputs:\n- {source: x}\n", "line 3: the key `paths` is missing in `inputs`"),
        (MINIMAL.replace("crawl", "a/b"), "line 3: `inputs.source` .*'a/b'"),
        (MINIMAL.replace("crawl", "'a\n\n'"), "line 3: `inputs.source`"),
        (MINIMAL.replace("[a.jsonl]", "[]"), "line 3: `inputs.paths`"),
        (MINIMAL.replace("[a.jsonl]", "[1]"), "line 3: `inputs.paths`"),
        (
            MINIMAL.replace("}", ", fields: {text: a..b}}"),
            r"line 3: `inputs.fields.text` .*'a\.\.b'",
        ),
        (MINIMAL.replace("}", ", format: orc}"), "line 3: `inputs.format` .*'jsonl', 'json'"),
        ("name: 2024-01-01\n" + MINIMAL[10:], "line 1: `name`"),
        ("name: a\nname: b\n", "line 2: the key `name` is there twice"),
        ("name: a\n? [x]\n: b\n", "line 2: a key isn't text"),
        ("name: [\n", "line 2: "),
        ("\t\n", "line 1: "),
        ("a: !!python/object:os.system x\n", "line 1: .*tag !!python/object:os.system; leave"),
        ("a: !mine {b: 1}\n", "line 1: a recipe has no values of the tag !mine; leave the tag out"),
        ("a: !!set {b}\n", "line 1: .* the tag !!set; leave"),
        ("a: &a {b: 1}\nc:\n  <<: *a\n", "line 3: `<<` merges nothing .*; write the keys out"),
        ("a: =\n", "line 1: `=` alone .*put it in quotes"),
        (
            "a: 2024-99-99\n",
            "line 1: `2024-99-99` can't be read as a date; if it is text, put it in",
        ),
        ("a: !!int b\n", "line 1: `b` can't be read as an integer"),
        ("a: &a [*a]\n", "line 1: an alias contains itself"),
        ("a: 1\n--- \nb: 2\n", "line 2: "),
        ("a: " + "[" * 5000 + "\n", "line 1: it is nested too deep"),
        ("- a\n", "isn't a recipe: it holds no keys"),
        ("\n", "isn't a recipe: it holds no keys"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        load_recipe(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"output: {{shuffle_seed: {'7' * 6000}}}", id="too long for an integer"),
        pytest.param(f"output: {{shuffle_seed: {'7' * 4000}}}", id="too large"),
        pytest.param(f"output: *{'k' * 6000}", id="alias"),
        pytest.param(f"{{{'k' * 500}: 1, {'k' * 500}: 1}}", id="key twice"),
        pytest.param(f"{'k' * 100}: 1", id="key"),
        pytest.param(f"stages: [{'k' * 6000}]", id="stage"),
        pytest.param(f"tokenize: !{'k' * 6000} {{}}", id="tag"),
    ],
)
def test_a_mistake_is_named_without_repeating_all_of_it(text: str) -> None:
    with pytest.raises(RecipeError) as refused:
        load_recipe(MINIMAL + text + "\n")
    assert len(str(refused.value)) < 500


def test_aliases_of_aliases_dont_explode() -> None:
    laughs = "a0: &a0 [x]\n"
    laughs += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
    with pytest.raises(RecipeError, match="more than 100,000 values"):
        load_recipe(laughs)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("gone.yaml", None, r"gone\.yaml can't be read: No such file.*`datapipe init` writes one"),
        ("a.yaml", b"\xff\xfe\x00", r"a\.yaml isn't a recipe: it isn't UTF-8 text"),
        ("b.yaml", b"nam: x\n", r"b\.yaml, line 1: `nam` isn't a known key; did you mean `name`"),
    ],
)
def test_a_file_that_isnt_a_recipe_is_named(
    tmp_path: Path, name: str, data: bytes | None, message: str
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(RecipeError, match=message):
        load_recipe(tmp_path / name)


@pytest.mark.parametrize(
    ("paths", "root", "expected"),
    [
        (["/data/a.jsonl"], None, ["a.jsonl"]),
        (["/data"], None, ["data"]),
        (["/data/*.jsonl"], None, ["*.jsonl"]),
        (["/data/x/a.jsonl", "/data/y"], None, ["x/a.jsonl", "y"]),
        (["/data/x/**/*.gz", "/data/x/y/b.gz"], None, ["**/*.gz", "y/b.gz"]),
        (["a.jsonl", "/b.jsonl"], None, ["a.jsonl", "b.jsonl"]),
        (["../a.jsonl", "../b/c"], None, ["a.jsonl", "b/c"]),
        (["/data/x/a.jsonl"], "/data", ["x/a.jsonl"]),
        (["/other/a.jsonl"], "/data", ["a.jsonl"]),
    ],
    ids=str,
)
def test_a_resolved_recipe_doesnt_know_where_data_lies(
    paths: list[str], root: str | None, expected: list[str]
) -> None:
    recipe = bare_recipe(paths, tokenizer="/home/me/tokenizer.json")
    entry = recipe.inputs[0].model_copy(update={"root": root})
    resolved = recipe.model_copy(update={"inputs": [entry]}).resolved(tokenizer="digest")
    assert resolved["inputs"][0]["paths"] == expected
    assert resolved["tokenize"]["tokenizer"] == "digest"
    assert json.loads(json.dumps(resolved)) == resolved
    assert "/home" not in json.dumps(resolved)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, 0),
        (123, 123),
        ("123", 123),
        ("64MiB", 64 << 20),
        ("64 MiB", 64 << 20),
        ("64mib", 64 << 20),
        ("1.5KiB", 1536),
        ("10MB", 10_000_000),
        ("2G", 2_000_000_000),
        ("2Gi", 2 << 30),
        ("1TB", 10**12),
        ("5b", 5),
    ],
)
def test_sizes(size: object, expected: int) -> None:
    assert parse_size(size) == expected


@pytest.mark.parametrize(
    "size", ["", "x", "-1", "1.5", "1.0001KiB", "64iB", "1e3", -1, True, None, 1.5]
)
def test_what_isnt_a_size(size: object) -> None:
    with pytest.raises(ValueError, match=r"not a (size|whole number)"):
        parse_size(size)
