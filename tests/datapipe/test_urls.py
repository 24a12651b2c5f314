"""Whatever looks like a URL and is none that can be used: refused, nothing made, no secret told."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import datapipe
from datapipe.cli.explain import explain
from datapipe.cli.main import main
from datapipe.dataset import (
    open_dataset,
    read_signing_key,
    read_verifying_key,
    verify_reference,
    write_key_pair,
)
from datapipe.dataset.foreign import export_megatron
from datapipe.dataset.runs import RunStore
from datapipe.engine import Request, plan_build, train_tokenizer
from datapipe.engine.rebuild import RebuildOptions, rebuild_dataset
from datapipe.errors import DatapipeError
from datapipe.recipe import load_recipe
from datapipe_tokenizers import TokenizerError, load

SECRET = "Sesame7"
TOKENIZER = "tokenizer.json"
URLS = {
    "chained": f"simplecache::s3://KEY:{SECRET}@bucket/x",
    "unknown": f"foo://user:{SECRET}@host/x?token={SECRET}",
    "slash in it": f"s3://KEY:a/{SECRET}@bucket/x",
    "one slash": f"https:/user:{SECRET}@host/x",
}
USES: dict[str, Callable[[str], object]] = {
    "open": lambda url: datapipe.open(url),
    "open a version": lambda url: datapipe.open(f"{url}@3"),
    "stream": lambda url: _stream(url),
    "build out": lambda url: datapipe.build("a.jsonl", out=url, tokenizer=TOKENIZER, workers=1),
    "build work": lambda url: datapipe.build(
        "a.jsonl", out="new", tokenizer=TOKENIZER, work=url, workers=1
    ),
    "dry run": lambda url: plan_build(
        Request(inputs=("a.jsonl",), tokenizer=TOKENIZER), own=["new", url]
    ),
    "build inputs": lambda url: datapipe.build(url, out="new", tokenizer=TOKENIZER, workers=1),
    "build recipe": lambda url: datapipe.build(f"{url}.yaml", out="new"),
    "build tokenizer": lambda url: datapipe.build("a.jsonl", out="new", tokenizer=url, workers=1),
    "append": lambda url: datapipe.append(url, "a.jsonl"),
    "append inputs": lambda url: datapipe.append("ds", url),
    "append author": lambda url: datapipe.append(
        "ds", "b.jsonl", author=f"{url}, https://user:{SECRET}@host", workers=1
    ),
    "train": lambda url: train_tokenizer(["b.jsonl"], out=url, vocab_size=300),
    "export": lambda url: export_megatron(open_dataset("ds"), url),
    "new key": lambda url: write_key_pair(url),
    "key": lambda url: read_signing_key(url),
    "public key": lambda url: read_verifying_key(url),
    "runs": lambda url: RunStore.at(url),
    "repair": lambda url: verify_reference("ds", repair_from=url),
    "recipe": lambda url: load_recipe(f"{url}.yaml"),
    "tokenizer": lambda url: load(url),
    "rebuild work": lambda url: rebuild_dataset(
        open_dataset("ds"), options=RebuildOptions(work=url, workers=1)
    ),
    "rebuild inputs": lambda url: rebuild_dataset(
        open_dataset("ds"), options=RebuildOptions(inputs=url, workers=1)
    ),
}


def _stream(url: str) -> object:
    stream = pytest.importorskip("datapipe.load", reason="torch isn't installed").TokenStream
    return stream(url, seq_len=8, batch_size=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, tokenizer_path: Path) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "a.jsonl").write_text('{"text": "the quick fox"}\n')
    shutil.copy(tokenizer_path, folder / TOKENIZER)
    datapipe.build(folder / "a.jsonl", out=folder / "ds", tokenizer=tokenizer_path, workers=1)
    return folder


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
@pytest.mark.parametrize("use", USES)
def test_a_url_that_is_none_is_refused(
    use: str, url: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    (made / "b.jsonl").write_text('{"text": "jumps"}\n')
    before = sorted(path.name for path in made.iterdir())
    with pytest.raises((DatapipeError, TokenizerError)) as raised:
        USES[use](url)
    assert explain(raised.value)[1] == 2
    assert SECRET not in "".join(traceback.format_exception(raised.value))
    assert sorted(path.name for path in made.iterdir()) == before


RECIPES = {
    "paths": "inputs: [{{source: a, paths: ['{url}']}}]",
    "one path": "inputs: [{{source: a, paths: '{url}'}}]",
    "root": "inputs: [{{source: a, paths: [a.jsonl], root: '{url}'}}]",
    "licence": "inputs: [{{source: a, paths: [a.jsonl], licence: '{url}'}}]",
    "source": "inputs: [{{source: '{url}', paths: [a.jsonl]}}]",
    "inputs": "inputs: ['{url}']",
    "tokenizer": "inputs: [{{source: a, paths: [a.jsonl]}}]\ntokenize: {{tokenizer: '{url}'}}",
    "no mapping": "inputs: [{{source: a, paths: [a.jsonl]}}]\ntokenize: '{url}'",
    "eos": "inputs: [{{source: a, paths: [a.jsonl]}}]\ntokenize: {{eos: '{url}'}}",
    "stage": "inputs: [{{source: a, paths: [a.jsonl]}}]\nstages: ['{url}']",
    "key": "inputs: [{{source: a, paths: [a.jsonl]}}]\n'{url}': 1",
    "shard_bytes": "inputs: [{{source: a, paths: [a.jsonl]}}]\noutput: {{shard_bytes: '{url}'}}",
    "no YAML": "inputs: [{url}\n  {url}: ]]",
}


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_tells_no_secret_of_its_urls(
    recipe: str,
    url: str,
    made: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(made)
    (made / "r.yaml").write_text("name: r\n" + RECIPES[recipe].format(url=url) + "\n")
    words = ["build", "r.yaml", "-o", "new", "-j1", "--debug"]
    words += [] if recipe == "tokenizer" else ["-t", TOKENIZER]
    with pytest.raises(SystemExit) as exited:
        main(words)
    assert exited.value.code == 2
    assert SECRET not in "".join(capfd.readouterr())
    assert not (made / "new").exists()
