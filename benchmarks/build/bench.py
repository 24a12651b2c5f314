"""`datapipe build` and datatrove on the same bytes: time, CPU, memory, and every token compared.

python benchmarks/build/bench.py [--text-mb 24] [--runs 3] [--write NAME]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.build import inputs as sets
from benchmarks.build.inputs import Inputs
from benchmarks.build.outputs import (
    UNEXPLAINED,
    compare,
    read_datapipe,
    read_datatrove,
    read_texts,
    rival_digest,
)
from benchmarks.build.processes import Measured, measure
from benchmarks.build.report import as_markdown

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = HERE.parent / "results"
RIVAL = HERE / ".rivals" / "bin" / "python"
DATAPIPE = [sys.executable, "-c", "from datapipe.cli import main; main()"]
SEED = 7  # as in rivals.py
CLEANING = "stages:\n  - normalize: {}\n  - drop_empty: {}\n  - dedup_exact: {}\n"
PARTS = {"tokenize": "", "clean": CLEANING}


@dataclass(frozen=True, kw_only=True, slots=True)
class Contestant:
    """One way to do the work of a part."""

    name: str
    workers: int
    command: list[str]
    out: Path
    environment: dict[str, str]
    digest: Callable[[Path], str]
    """Of the output: it has to be the same after every run."""


def main() -> None:
    options = _arguments()
    data = Path(options.data)
    missing = [name for name in (*sets.CORPORA, sets.OLDER) if not _corpus(data, name).exists()]
    tokenizer = data / "tokenizers" / "hf" / "gpt2" / "tokenizer.json"
    if missing or not tokenizer.exists():
        print(f"skipped: no {', '.join(missing) or tokenizer} in {data}; name another with --data")
        return
    _make_rival()
    with tempfile.TemporaryDirectory(prefix="datapipe-bench-", dir=options.scratch) as folder:
        result = _Bench(Path(folder), data, tokenizer, options).run()
    print(as_markdown(result))
    if options.write:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{options.write}.json").write_text(json.dumps(result, indent=2) + "\n")
        (RESULTS / f"{options.write}.md").write_text(as_markdown(result))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text-mb", type=int, default=24, help="text in each part, MB")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", default=str(ROOT.parent / "shared" / "data"))
    parser.add_argument("--scratch", help="where outputs go; default: the temporary folder")
    parser.add_argument("--write", metavar="NAME", help="write results/NAME.json and .md")
    return parser.parse_args()


def _corpus(data: Path, name: str) -> Path:
    return data / "text" / f"{name}.jsonl.zst"


def _make_rival() -> None:
    if not RIVAL.exists():
        print("making the rival's environment, about a minute", flush=True)
        subprocess.run([str(HERE / "setup_rivals.sh"), sys.executable], check=True)


class _Bench:
    """All parts, one after the other, in one scratch folder."""

    def __init__(
        self, folder: Path, data: Path, tokenizer: Path, options: argparse.Namespace
    ) -> None:
        self._folder = folder
        self._data = data
        self._tokenizer = tokenizer
        self._options = options
        self._log = folder / "log"

    def run(self) -> dict[str, Any]:
        text_bytes = self._options.text_mb * 1_000_000
        loads = [round(os.getloadavg()[0], 1)]
        corpora = {"tokenize": sets.CORPORA, "clean": (*sets.CORPORA, sets.OLDER)}
        parts = {}
        for part, names in corpora.items():
            given = sets.prepare(
                self._folder / part, data=self._data / "text", names=names, text_bytes=text_bytes
            )
            parts[part] = self._part(part, given)
            loads.append(round(os.getloadavg()[0], 1))
        return {
            "question": "Is a build faster than datatrove's, and do both give the same tokens?",
            "command": _command(self._options),
            "machine": _machine() | {"load_averages": loads},
            "versions": _versions(),
            "runs": self._options.runs,
            "parts": parts,
            "tricky": self._tricky(),
            "start": self._start(),
        }

    def _part(self, part: str, given: Inputs) -> dict[str, Any]:
        contestants = self._contestants(part, given)
        measured: dict[str, list[Measured]] = {item.name: [] for item in contestants}
        digests: dict[str, set[str]] = {}
        for number in range(self._options.runs):
            order = contestants if number % 2 == 0 else contestants[::-1]
            for item in order:
                measured[item.name].append(self._measured(item))
                kind = item.name.partition(",")[0]
                digests.setdefault(kind, set()).add(item.digest(item.out))
        for kind, found in digests.items():
            assert len(found) == 1, f"{kind} gave different outputs: {found}"
        return {
            "input": {name: value for name, value in asdict(given).items() if name != "folder"},
            "results": {
                name: _summary(runs, text_bytes=given.text_bytes) for name, runs in measured.items()
            },
            "comparison": self._comparison(part, given, digests),
        }

    def _measured(self, item: Contestant) -> Measured:
        shutil.rmtree(item.out, ignore_errors=True)
        result = measure(item.command, environment=item.environment, log=self._log)
        print(f"{item.name:40s} {result.wall_seconds:6.1f} s", flush=True)
        return result

    def _contestants(self, part: str, given: Inputs) -> list[Contestant]:
        recipe = self._recipe(part, given.folder)
        ours = [self._datapipe(recipe, workers) for workers in (1, 2)]
        theirs = [self._datatrove(part, given.folder, workers) for workers in (1, 2)]
        bare = self._datatrove("encoder", given.folder, 1, name="encoder alone, 1 thread")
        return [ours[0], theirs[0], ours[1], theirs[1], *([bare] if part == "tokenize" else [])]

    def _recipe(self, part: str, folder: Path) -> Path:
        path = self._folder / f"{part}-{folder.name}.yaml"
        path.write_text(
            f"name: bench\ninputs:\n  - source: text\n    paths: ['{folder}']\n{PARTS[part]}"
            f"tokenize: {{tokenizer: '{self._tokenizer}'}}\n"
        )
        return path

    def _datapipe(self, recipe: Path, workers: int) -> Contestant:
        out = self._folder / "datapipe"
        arguments = ["build", str(recipe), "--out", str(out), "--workers", str(workers), "--quiet"]
        return Contestant(
            name=f"datapipe, {_workers(workers)}",
            workers=workers,
            command=[*DATAPIPE, *arguments],
            out=out,
            environment=dict(os.environ),
            digest=_content,
        )

    def _datatrove(
        self, what: str, folder: Path, workers: int, *, name: str = "", ids: bool = False
    ) -> Contestant:
        out = self._folder / "datatrove"
        arguments = [what, "--inputs", str(folder), "--tokenizer", str(self._tokenizer)]
        arguments += ["--out", str(out), "--workers", str(workers), *(["--ids"] if ids else [])]
        return Contestant(
            name=name or f"datatrove, {_workers(workers)}",
            workers=workers,
            command=[str(RIVAL), str(HERE / "rivals.py"), *arguments],
            out=out,
            # One thread a worker, as datapipe has it; by default the encoder uses all cores.
            environment=dict(os.environ) | {"TOKENIZERS_PARALLELISM": "false"},
            digest=rival_digest,
        )

    def _comparison(
        self, part: str, given: Inputs, digests: dict[str, set[str]]
    ) -> dict[str, object]:
        """Runs both once more, the rival noting ids, and compares what they wrote."""
        ours = self._datapipe(self._recipe(part, given.folder), 2)
        theirs = self._datatrove(part, given.folder, 2, ids=True)
        for item, kind in ((ours, "datapipe"), (theirs, "datatrove")):
            self._measured(item)
            assert {item.digest(item.out)} == digests[kind], f"{kind} gave another output"
        found = compare(
            read_datapipe(ours.out),
            read_datatrove(theirs.out, seed=SEED),
            read_texts(given.folder),
        )
        assert UNEXPLAINED not in str(found["different"]), found
        return found

    def _tricky(self) -> dict[str, Any]:
        """What becomes of documents that programs may treat differently, one file a kind."""
        folder = self._folder / "tricky"
        sets.write_tricky(folder)
        ours = self._datapipe(self._recipe("tokenize", folder), 1)
        theirs = self._datatrove("each", folder, 1, ids=True)
        self._measured(ours)
        self._measured(theirs)
        outcome = json.loads((theirs.out / "outcome.json").read_text())
        kept = read_datapipe(ours.out)
        texts = read_texts(folder)
        kinds = {}
        for file in sorted(outcome):
            kind = Path(file).stem
            rival = {} if outcome[file] else read_datatrove(theirs.out / kind, seed=SEED)
            mine = {name: ids for name, ids in kept.items() if name.startswith(f"{file}:")}
            kinds[kind] = compare(mine, rival, texts) | {"datatrove_error": outcome[file][:200]}
        return {"kinds": kinds, "quarantined": _quarantined(ours.out)}

    def _start(self) -> dict[str, Any]:
        """What commands cost before they have anything to do."""
        folder = self._folder / "tiny"
        folder.mkdir()
        (folder / "tiny.jsonl").write_text('{"id": "tiny/0", "text": "a few words"}\n')
        build = self._datapipe(self._recipe("tokenize", folder), 1)
        rival = self._datatrove("tokenize", folder, 1)
        commands = {
            "datapipe --version": [*DATAPIPE, "--version"],
            "datapipe build, one document": build.command,
            "datapipe show": [*DATAPIPE, "show", str(build.out)],
            "datatrove, one document": rival.command,
        }
        runs: dict[str, list[Measured]] = {name: [] for name in commands}
        for _ in range(max(self._options.runs, 5)):
            shutil.rmtree(build.out, ignore_errors=True)
            shutil.rmtree(rival.out, ignore_errors=True)
            for name, command in commands.items():
                environment = rival.environment if name.startswith("datatrove") else os.environ
                runs[name].append(measure(command, environment=environment, log=self._log))
        return {name: _summary(found, text_bytes=None) for name, found in runs.items()}


def _workers(count: int) -> str:
    return f"{count} worker{'s' if count > 1 else ''}"


def _content(out: Path) -> str:
    shown = subprocess.run(
        [*DATAPIPE, "show", str(out), "--json"], check=True, capture_output=True
    ).stdout
    return str(json.loads(shown)["content"])


def _quarantined(out: Path) -> list[str]:
    from datapipe.dataset import open_dataset

    rows = open_dataset(str(out)).quarantine().select(["source_file", "error"]).to_pylist()
    return [f"{row['source_file']}: {row['error']}" for row in rows]


def _summary(runs: list[Measured], *, text_bytes: int | None) -> dict[str, Any]:
    columns = {
        "wall_seconds": [run.wall_seconds for run in runs],
        "cpu_seconds": [run.cpu_seconds for run in runs],
        "peak_rss_mb": [run.peak_rss_mb for run in runs],
    }
    if text_bytes is not None:
        columns["text_mb_per_second"] = [text_bytes / 1e6 / run.wall_seconds for run in runs]
    return {
        name: {
            "min": round(min(values), 3),
            "median": round(statistics.median(values), 3),
            "max": round(max(values), 3),
        }
        for name, values in columns.items()
    } | {"runs": [asdict(run) for run in runs]}


def _versions() -> dict[str, str]:
    names = ("datapipe-train", "tokenizers", "pyarrow", "numpy")
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "from source"
    script = "from importlib.metadata import version as v; print(v('datatrove'), v('tokenizers'))"
    shown = subprocess.run([str(RIVAL), "-c", script], check=True, capture_output=True, text=True)
    found["datatrove"], found["datatrove's tokenizers"] = shown.stdout.split()
    return found


def _command(options: argparse.Namespace) -> str:
    """Returns the command without places of this machine."""
    words = ["python benchmarks/build/bench.py", f"--text-mb {options.text_mb}"]
    words += [f"--runs {options.runs}", *([f"--write {options.write}"] if options.write else [])]
    return " ".join(words)


def _machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
    }


if __name__ == "__main__":
    main()
