"""The demo as a story: every part says what it does, then does it through the public functions."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from datapipe.cli.arguments import AsJson, file_name
from datapipe.cli.demo.material import Material, make_material
from datapipe.cli.output import Output, stderr_console, table
from datapipe.cli.progress import progress
from datapipe.dataset import Dataset, SeenVersions, open_dataset, verify_dataset
from datapipe.engine import BuildOptions, Request, append_dataset, build_dataset, train_tokenizer
from datapipe.errors import FailedError, MissingExtraError, UsageError
from datapipe.lineage import documents_of_step, steps_of_document

__all__ = ["register"]

_DATASET = "dataset"
_STEP = 12
_RUN = "demo"
_VOCAB_SIZE = 4_096
_TRAINING_BYTES = 3_000_000
_RECIPE = """\
name: demo
inputs:
  - source: stdlib
    paths: [{stdlib}]
  - source: packages
    paths: [{packages}]
  - source: texts
    paths: [{texts}]
stages:
  - normalize: {{}}
  - drop_empty: {{}}
  - dedup_exact: {{}}
tokenize:
  tokenizer: {tokenizer}
output:
  shard_bytes: 1MiB
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(demo)


def demo(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Keep what is made in this folder.", callback=file_name),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the main job on the files of this Python installation, end to end, in about a minute."""
    if find_spec("torch") is None:
        raise MissingExtraError(
            "the demo trains a model and needs torch: pip install 'datapipe-train[all]'"
        )
    started = time.monotonic()
    with _folder(out.resolve() if out is not None else None) as folder:
        story = _Story(folder, quiet=as_json)
        result = story.run()
        result["seconds"] = round(time.monotonic() - started, 1)
        kept = str(folder) if out is not None else None
        Output(as_json=as_json).result(result, lambda console: _draw(console, result, kept))


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is None:
        folder = Path(tempfile.mkdtemp(prefix="datapipe-demo-")).resolve()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            SeenVersions.of_user().forget(str(folder / _DATASET))
        return
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} exists and isn't empty; name a new folder, or remove it")
    out.mkdir(parents=True, exist_ok=True)
    yield out


class _Story:
    """The parts of the demo, in order."""

    def __init__(self, folder: Path, *, quiet: bool) -> None:
        self._folder = folder
        self._quiet = quiet
        self._console = stderr_console()
        self._started = time.monotonic()
        self._dataset = folder / _DATASET  # absolute: a recipe's paths are relative to it
        self._tokenizer = folder / "tokenizer.json"

    def run(self) -> dict[str, Any]:
        """Returns what was made and found."""
        material = self._make_material()
        self._train_tokenizer(material)
        first = self._build(material)
        second = self._append(material)
        dataset = open_dataset(str(self._dataset))
        losses = self._train(dataset)
        resume = self._check_resume(dataset)
        lineage = self._lineage(dataset)
        verified = self._verify(dataset)
        return {
            "dataset": str(self._dataset),
            "versions": [first, second],
            "training": losses,
            "resume": resume,
            "lineage": lineage,
            "verified": verified,
        }

    def _part(self, text: str) -> None:
        if not self._quiet:
            seconds = time.monotonic() - self._started
            self._console.print(f"\n[{seconds:4.1f} s] {text}", markup=False, style="bold")

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(f"  {text}", markup=False)

    def _make_material(self) -> Material:
        self._part("Input: sources, docs and licences of this Python, in five formats")
        material = make_material(self._folder / "raw")
        self._say(
            f"{material.files:,} files, {material.text_bytes / 1e6:.1f} MB of text as JSONL, "
            "JSONL.gz, JSONL.zst, Parquet and text files; one line is cut on purpose"
        )
        return material

    def _train_tokenizer(self, material: Material) -> None:
        self._part(
            f"Tokenizer: byte-level BPE with {_VOCAB_SIZE:,} tokens, trained on a part of it"
        )
        with progress(quiet=self._quiet) as listener:
            train_tokenizer(
                [str(material.packages), str(material.texts)],
                out=self._tokenizer,
                vocab_size=_VOCAB_SIZE,
                max_bytes=_TRAINING_BYTES,
                progress=listener,
            )

    def _build(self, material: Material) -> dict[str, Any]:
        self._part("Version 1: normalize, drop empty and duplicate documents, tokenize, commit")
        recipe = self._folder / "recipe.yaml"
        recipe.write_text(
            _RECIPE.format(
                **{
                    name: json.dumps(str(path))  # a quoted string of JSON is one of YAML too
                    for name, path in (
                        ("stdlib", material.stdlib),
                        ("packages", material.packages),
                        ("texts", material.texts),
                        ("tokenizer", self._tokenizer),
                    )
                }
            )
        )
        with progress(quiet=self._quiet) as listener:
            options = BuildOptions(author="demo", reason="first version", progress=listener)
            request = Request(inputs=(str(recipe),))
            report = build_dataset(request, out=str(self._dataset), options=options)
        return report.to_json()

    def _append(self, material: Material) -> dict[str, Any]:
        self._part("Version 2: append a file; what is in already is left out by name")
        with progress(quiet=self._quiet) as listener:
            options = BuildOptions(author="demo", reason="more packages", progress=listener)
            request = Request(inputs=(str(material.later),), source="packages")
            report = append_dataset(str(self._dataset), request, options=options)
        return report.to_json()

    def _train(self, dataset: Dataset) -> dict[str, float]:
        from datapipe.cli.demo.training import train  # torch takes seconds to import

        self._part("Training: a tiny model on a mixture of three sources")
        return train(dataset, self._say, run=_RUN)

    def _check_resume(self, dataset: Dataset) -> dict[str, int]:
        from datapipe.cli.demo.training import check_resume

        self._part("Resume: one rank stops, two ranks go on; every delivered sample is compared")
        found = check_resume(dataset)
        self._say(
            f"{found['samples']:,} samples: {found['lost']} lost, {found['repeated']} repeated"
        )
        if found["lost"] or found["repeated"]:
            raise FailedError(
                f"the resumed stream differs from the undisturbed one: {found}. This is a fault of "
                "datapipe; please report it"
            )
        return found

    def _lineage(self, dataset: Dataset) -> dict[str, Any]:
        self._part(f"Lineage: which documents were in step {_STEP}, and where one of them was seen")
        step = documents_of_step(dataset, run=_RUN, step=_STEP).to_json()
        documents = [document for sample in step["samples"] for document in sample["documents"]]
        shown = documents[:5]
        for document in shown:
            name = document["record_id"] or f"line at {document['source_offset']}"
            place = f"{document['source']}/{document['source_file']}"
            self._say(f"{document['doc_id']}  {place}  {name}")
        self._say(f"... {len(documents):,} documents in {len(step['samples'])} samples")
        seen = steps_of_document(dataset, shown[0]["doc_id"], run=_RUN).to_json()["seen"]
        steps = sorted({place["step"] for place in seen})
        more = f" and {len(steps) - 12:,} more" if len(steps) > 12 else ""
        self._say(f"{shown[0]['doc_id']} was in the steps {', '.join(map(str, steps[:12]))}{more}")
        return {
            "step": _STEP,
            "documents": len(documents),
            "doc_id": shown[0]["doc_id"],
            "steps": steps,
        }

    def _verify(self, dataset: Dataset) -> dict[str, Any]:
        self._part("Verify: every digest, from the log down to blocks of tokens")
        with progress(quiet=self._quiet) as listener:
            report = verify_dataset(dataset, progress=listener)
        if report.problems:
            raise FailedError(
                f"verification found damage: {report.problems[0]}. Check the disk, and run it again"
            )
        return {"objects": report.objects, "bytes": report.bytes}


def _shown(path: str | Path) -> str:
    """Returns a path as short as it can be typed from the current folder."""
    here = Path.cwd()
    path = Path(path)
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _draw(console: Console, result: dict[str, Any], kept: str | None) -> None:
    rows = []
    for version in result["versions"]:
        documents = version["documents"]
        rows.append(
            (
                version["version"],
                documents["in"],
                documents["kept"],
                sum(documents["dropped"].values()),
                sum(documents["quarantined"].values()),
                version["tokens"],
                version["shards"],
                version["manifest"][:12],
            )
        )
    columns = ["version", "in", "kept", "dropped", "quarantined", "tokens", "shards", "manifest"]
    console.print()
    console.print(table(columns, rows))
    training = result["training"]
    console.print(
        f"\nloss {training['first_loss']:.2f} -> {training['last_loss']:.2f}; resumed with another "
        f"world size: {result['resume']['lost']} samples lost, {result['resume']['repeated']} "
        f"repeated; {result['verified']['objects']:,} objects verified; {result['seconds']:.0f} s",
        markup=False,
    )
    if kept is None:
        console.print("\nNothing was kept. To keep it and go on: datapipe demo --out demo-out")
        return
    dataset, doc = _shown(result["dataset"]), result["lineage"]["doc_id"]
    program = "datapipe" if shutil.which("datapipe") else _shown(Path(sys.executable).parent)
    program = program if program == "datapipe" else f"{program}/datapipe"
    console.print(
        f"\nIt is in {_shown(kept)}. Try next:\n"
        f"  {program} show {dataset}\n"
        f"  {program} read {dataset} --doc {doc}\n"
        f"  {program} lineage batch {dataset} --run {_RUN} --step 150",
        markup=False,
    )
