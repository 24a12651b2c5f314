from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from datapipe.cli.garbage import parse_duration
from datapipe.cli.main import application, main
from datapipe_tokenizers import Difference

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process."""

    def run(*words: object) -> Result:
        with pytest.raises(SystemExit) as exited:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        return Result(int(exited.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "raw" / "a.jsonl"
    path.parent.mkdir()
    lines = [{"id": f"d{n}", "text": f"the fox number {n} jumps"} for n in range(40)]
    lines += [{"id": "same", "text": "the fox number 1 jumps"}, {"id": "none", "text": " "}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"cut": \n')
    return path


@pytest.fixture
def dataset(run: Run, raw: Path, tokenizer_path: Path, tmp_path: Path) -> Path:
    out = tmp_path / "ds"
    result = run("build", raw, "-t", tokenizer_path, "-o", out, "-j", 1, "-q", "-m", "first")
    assert result.code == 0, result.err
    return out


def test_build_prints_its_report_as_json(
    run: Run, raw: Path, tokenizer_path: Path, tmp_path: Path
) -> None:
    result = run("build", raw, "--tokenizer", tokenizer_path, "--out", tmp_path / "ds", "--json")
    report = result.json()
    assert report["version"] == 1
    assert report["documents"] == {
        "in": 43,
        "kept": 40,
        "dropped": {"dedup_exact.duplicate": 1, "drop_empty.empty": 1},
        "quarantined": {"invalid_json": 1},
    }
    assert {"dataset", "manifest", "logical", "content", "bytes_in", "tokens"} <= set(report)
    assert {"shards", "seconds"} <= set(report)
    assert "read and clean" in result.err


def test_build_draws_a_table(run: Run, raw: Path, tokenizer_path: Path, tmp_path: Path) -> None:
    result = run("build", raw, "-t", tokenizer_path, "-o", tmp_path / "ds", "-j", 1, "--quiet")
    assert re.search(r"documents kept +40\n", result.out)
    assert "committed version 1" in result.out
    assert result.err == ""


def test_a_dry_run_writes_nothing(
    run: Run, raw: Path, tokenizer_path: Path, tmp_path: Path
) -> None:
    result = run("build", raw, "-t", tokenizer_path, "-o", tmp_path / "ds", "--dry-run", "--json")
    assert result.json()["sources"][0]["files"] == 1
    assert not (tmp_path / "ds").exists()


def test_append_and_log(run: Run, dataset: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"text": "one more"}\n')
    result = run("append", dataset, more, "-j", 1, "--json", "--author", "ann", "-m", "more")
    assert result.json()["documents"]["kept"] == 1
    entries = run("log", dataset, "--json").json()
    assert [(e["version"], e["operation"], e["reason"]) for e in entries] == [
        (1, "build", "first"),
        (2, "append", "more"),
    ]
    text = run("log", dataset).out
    assert re.search(r"version 2  .* UTC  append by ann\n +more\n +41 documents \(\+1\), ", text)
    (newest,) = run("log", dataset, "-n", 1, "--json").json()
    assert newest["counts"]["change"]["kept"] == 1


def test_diff_says_what_came(run: Run, dataset: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"text": "one more"}\n{"text": " "}\n')
    run("append", dataset, more, "-j", 1)
    data = run("diff", dataset, 1, 2, "--documents", "--json").json()
    assert data["sources"]["documents"]["change"]["documents"] == 1
    assert data["reasons"]["dropped: drop_empty.empty"]["change"] == 1
    assert data["languages"]["unknown"]["text_bytes"] == 8
    (document,) = data["added"]["documents"]
    assert (document["source_file"], document["reason"]) == ("more.jsonl", "not read")
    text = run("diff", dataset, "v1", "v2", "--documents").out
    assert re.search(r"documents +\+1 +\+\d+ +\+8 *\n", text)
    assert "added: 1 documents" in text
    assert "removed: 0 documents" in text


def test_tags_are_set_listed_used_and_deleted(run: Run, dataset: Path) -> None:
    assert run("tag", dataset, "prod", "--dry-run", "--json").json()["version"] == 1
    assert run("tag", dataset, "--json").json() == []
    made = run("tag", dataset, "prod", 1, "-m", "good", "--author", "ann")
    assert made.out == "tag prod names version 1\n"
    assert run("show", f"{dataset}@prod", "--json").json()["version"] == 1
    assert run("show", f"{dataset}@2099-01-01T00:00", "--json").json()["version"] == 1
    assert re.search(r"prod +1 +no +ann +good", run("tag", dataset).out)
    assert re.search(r"  \[prod\]\n", run("log", dataset).out)
    refused = run("tag", dataset, "prod", "--delete")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert run("tag", dataset, "prod", "--delete", "--yes").code == 0
    assert run("tag", dataset, "--json").json() == []
    moves = run("tag", dataset, "prod", "--history", "--json").json()["moves"]
    assert [move["version"] for move in moves] == [1, None]
    assert re.search(r"1 +ann +good", run("tag", dataset, "prod", "--history").out)


def test_a_release_is_not_moved(run: Run, dataset: Path) -> None:
    run("tag", dataset, "v1-final", "--release")
    refused = run("tag", dataset, "v1-final", "--delete", "--yes")
    assert refused.code == 2
    assert "is a release" in refused.err


def test_gc_marks_then_deletes(run: Run, dataset: Path) -> None:
    (dataset / "tokens/ab").mkdir(parents=True, exist_ok=True)
    (dataset / "tokens/ab/left.bin").write_bytes(b"1234")
    seen = run("gc", dataset, "--grace", "0", "--dry-run", "--json").json()
    assert seen["garbage"] == {
        "objects": 1,
        "bytes": 4,
        "folders": {"tokens": {"objects": 1, "bytes": 4}},
    }
    assert (seen["deleted"], seen["kept"]) == (None, {"1": ["newest"]})
    assert not (dataset / "_gc").exists()
    assert run("gc", dataset, "--json").json()["garbage"]["objects"] == 0
    assert "marked; after the grace period" in run("gc", dataset, "--grace", "0s").out
    assert (dataset / "tokens/ab/left.bin").exists()
    assert "deleted: 1 objects" in run("gc", dataset, "--grace", "0", "--yes").out
    assert not (dataset / "tokens/ab/left.bin").exists()
    assert run("verify", dataset).code == 0


def test_reasons_and_authors_stay_on_one_line(run: Run, dataset: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"text": "one more"}\n')
    run("append", dataset, more, "-j", 1, "-m", "why\nnot", "--author", "a\nb")
    run("hold", dataset, "2", "-m", "model\nM")
    assert r"hold: model\nM" in run("gc", dataset, "--dry-run").out
    log = run("log", dataset).out
    assert r"append by a\nb" in log
    assert r"    why\nnot" in log


def test_gc_retires_versions_only_with_yes(run: Run, dataset: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"text": "one more"}\n')
    run("append", dataset, more, "-j", 1)
    refused = run("gc", dataset, "--retire-older-than", "0")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    options = ("--retire-older-than", "0", "--grace", "0", "--json")
    assert run("gc", dataset, *options, "--dry-run").json()["retired"] == [1]
    assert "would be retired: versions 1\n" in run("gc", dataset, *options[:4], "--dry-run").out
    assert run("hold", dataset, "1", "-m", "model M").out.endswith("held\n")
    assert run("gc", dataset, *options, "--yes").json()["kept"]["1"] == ["hold: model M"]
    assert run("hold", dataset, "1", "--drop").code == 2
    assert run("hold", dataset, "1", "--drop", "--yes", "--json").json()[0]["version"] == 1
    assert run("hold", dataset, "--json").json() == []
    newest = run("log", dataset, "--json").json()[-1]["version"]
    assert run("hold", dataset, "--reason", "kept", "--json").json()[0]["version"] == newest
    assert run("hold", dataset, str(newest), "--drop", "--yes").code == 0
    assert run("gc", dataset, *options, "--yes").json()["retired"] == [1]
    assert "was retired by" in run("show", f"{dataset}@1").err
    assert "(retired)" in run("log", dataset).out
    assert run("verify", dataset).code == 0


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("90", 90), ("1.5h", 5400), ("7d", 604_800), ("2w", 1_209_600)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_show_names_sources_and_digests(run: Run, dataset: Path) -> None:
    data = run("show", dataset, "--json").json()
    assert [source["documents"] for source in data["sources"]] == [40]
    text = run("show", f"{dataset}@1").out
    assert data["manifest"] in text
    assert "quarantined: invalid_json" in text


def test_a_warning_goes_to_standard_error(run: Run, tokenizer_path: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": " "}\n')
    result = run("build", tmp_path / "a.jsonl", "-t", tokenizer_path, "-o", tmp_path / "ds", "-q")
    assert result.code == 0
    assert "warning: no document was kept of 1 records" in result.err


def test_verify_says_what_is_damaged(run: Run, dataset: Path) -> None:
    assert run("verify", dataset, "--json").json()["problems"] == []
    (shard,) = (dataset / "tokens").rglob("*.bin")
    shard.chmod(0o644)
    shard.write_bytes(shard.read_bytes()[:-2] + b"\7\0")
    result = run("verify", dataset)
    assert result.code == 1
    assert shard.stem in result.err
    assert re.search(r"Run `datapipe verify .*@1 --repair-from COPY`", result.err)


def test_verify_repairs_from_a_copy(run: Run, dataset: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(dataset, tmp_path / "copy")
    (shard,) = (dataset / "tokens").rglob("*.bin")
    size = shard.stat().st_size
    shard.write_bytes(b"")
    result = run("verify", dataset, "--repair-from", copy, "-j", 1, "--json")
    assert result.code == 0
    repaired = result.json()["repaired"]
    assert (repaired["objects"], repaired["bytes"]) == (1, size)
    assert shard.stem in repaired["items"][0]["path"]
    shard.unlink()
    assert (
        f"1 objects, {size:,} bytes repaired" in run("verify", dataset, "--repair-from", copy).out
    )
    shard.unlink()
    shutil.rmtree(copy / "tokens")
    result = run("verify", dataset, "--repair-from", copy)
    assert result.code == 1
    assert f"not repaired: {copy} doesn't have it" in result.out
    assert run("verify", dataset, "--repair-from", dataset).code == 2


def test_rebuild_says_whether_the_same_comes_out(run: Run, dataset: Path, raw: Path) -> None:
    result = run("rebuild", dataset, "-j", 1, "-q")
    assert result.code == 0
    assert "version 1 (build, 1 inputs, 0.0 MB): identical" in result.out
    moved = raw.parent.rename(raw.parent.with_name("elsewhere"))
    missing = run("rebuild", dataset, "-j", 1, "-q")
    assert missing.code == 2
    assert "1 of 1 recorded inputs aren't where they were" in missing.err
    found = run("rebuild", dataset, "--inputs", moved, "-j", 1, "-q", "--json")
    assert (found.code, found.json()["verdict"]) == (0, "identical")
    (moved / raw.name).write_text('{"text": "another"}\n')
    changed = run("rebuild", dataset, "--inputs", moved, "-j", 1, "-q", "--json")
    assert changed.code == 1
    assert changed.json()["steps"][0]["difference"]["cause"] == "input"
    assert "doesn't come out as recorded" in changed.err


def test_read_gives_the_text_back(run: Run, dataset: Path) -> None:
    (found,) = run("read", dataset, "--doc", "d7", "--json").json()
    assert found["text"] == "the fox number 7 jumps"
    by_id = run("read", dataset, "--doc", found["doc_id"])
    assert "the fox number 7 jumps" in by_id.out
    assert len(run("read", dataset, "--head", 3, "--json").json()) == 3


def test_tokenizer_show(run: Run, tokenizer_path: Path) -> None:
    facts = json.loads(run("tokenizer", "show", tokenizer_path, "--json").out)
    assert facts["eos"] == {"id": 0, "token": "<|endoftext|>"}
    assert (facts["backend"], facts["reference"]) == ("gigatoken", "huggingface")
    shown = run("tokenizer", "show", tokenizer_path)
    assert shown.code == 0
    assert "end of text    <|endoftext|> (0)" in shown.out
    assert facts["canary"] in shown.out


def test_tokenizer_check(run: Run, tokenizer_path: Path, tmp_path: Path) -> None:
    lines = ['{"text": "the fox", "lang": "en"}', '{"text": "ein Fuchs", "lang": "de"}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    words = ("tokenizer", "check", tokenizer_path, tmp_path / "a.jsonl", "--language-field", "lang")
    data = json.loads(run(*words, "-q", "--json").out)
    assert [backend["name"] for backend in data["backends"]] == ["gigatoken", "huggingface"]
    assert (data["documents"], data["bytes"], data["differences"]) == (2, 16, [])
    assert set(data["languages"]) == {"en", "de"}
    assert data["languages"]["en"]["tokens_per_byte"] < data["languages"]["de"]["tokens_per_byte"]
    shown = run(*words, "-q")
    assert re.search(r"huggingface: the reference, .* MB/s", shown.out)


def test_tokenizer_check_of_backends_that_differ(
    run: Run, tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "the fox"}')
    difference = Difference(row=0, token=1, found=5, expected=7)
    monkeypatch.setattr("datapipe.engine.tokenizer_check.first_difference", lambda *_: difference)
    result = run("tokenizer", "check", tokenizer_path, tmp_path / "a.jsonl", "-q", "--json")
    assert result.code == 1
    assert "differ: a.jsonl at 0: token 1 is 5 by gigatoken, 7 by huggingface" in result.err
    assert len(json.loads(result.out)["differences"]) == 1


def test_tokenizer_check_without_documents(run: Run, tokenizer_path: Path) -> None:
    result = run("tokenizer", "check", tokenizer_path, "-q")
    assert result.out.splitlines() == [
        "gigatoken: gives the reference's ids",
        "huggingface: the reference",
    ]


def test_tokenizer_train_then_build(run: Run, raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "made.json"
    trained = run("tokenizer", "train", raw, "-o", out, "--vocab-size", 300, "-q", "--json")
    assert trained.json()["vocab_size"] <= 300
    assert run("build", raw, "-t", out, "-o", tmp_path / "ds", "-j", 1, "-q").code == 0
    again = run("tokenizer", "train", raw, "-o", out, "-q")
    assert again.code == 2
    assert "--force" in again.err


def test_init_writes_a_recipe_that_loads(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    assert run("init", path).code == 0
    assert "inputs:" in path.read_text()
    assert run("init", path).code == 2
    assert run("init", path, "--force").code == 0


# -- bad usage: one line, with the remedy


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["build", "{tmp}/missing.jsonl", "-t", "{tok}"], 2, r"missing\.jsonl doesn't exist"),
        (["build", "{tmp}/empty", "-t", "{tok}"], 2, r"empty holds no file"),
        (["build", "{raw}", "-t", "{tmp}/no.json"], 2, r"no\.json"),
        (["build", "{raw}"], 2, r"no tokenizer is given.*datapipe tokenizer train"),
        (["build", "{raw}", "-t", "{tok}", "--text-field", "txt"], 2, r"did you mean `text`"),
        (["build", "{tmp}/x.orc", "-t", "{tok}"], 2, r"x\.orc is ORC.*known formats"),
        (["build", "{tmp}/r.yaml"], 2, r"line 1: `nam` isn't a known key.*`name`"),
        (["build", "{raw}", "-t", "{tok}", "-o", "nothing://b/x"], 2, r"nothing"),
        (["append", "{tmp}/nowhere", "{raw}"], 2, r"no dataset at .*nowhere"),
        (["show", "{tmp}/nowhere"], 2, r"no dataset at"),
        (["log", "{tmp}/nowhere"], 2, r"no dataset at"),
        (["diff", "{tmp}/nowhere", "1", "2"], 2, r"no dataset at"),
        (["tag", "{tmp}/nowhere"], 2, r"no dataset at"),
        (["gc", "{tmp}/nowhere"], 2, r"no dataset at"),
        (["hold", "{tmp}/nowhere"], 2, r"no dataset at"),
        (["read", "{tmp}/nowhere"], 2, r"no dataset at"),
        (["verify", "{tmp}/nowhere"], 2, r"no dataset at"),
        (["lineage", "batch", "{tmp}/nowhere", "--run", "r", "--step", "1"], 2, r"no dataset at"),
        (["build", "--nonsense"], 2, r"No such option.*see `datapipe build --help`"),
        (["build", "{raw}", "-t", "{tok}", "-j", "0"], 2, r"Invalid value"),
        (["frobnicate"], 2, r"No such command.*see `datapipe --help`"),
        (["build", ""], 2, r"input 1 is empty"),
        (["build", "{raw}", "-t", ""], 2, r"--tokenizer is empty"),
        (["build", "{raw}", "-t", "{tok}", "--eos", ""], 2, r"--eos is empty"),
        (["build", "{raw}", "-t", "{tok}", "--text-field", ""], 2, r"--text-field is empty"),
        (["build", "{raw}", "-t", "{tok}", "--text-field", "a..b"], 2, r"text field.*dots"),
        (["build", "{raw}", "-t", "{tok}", "--work", ""], 2, r"names no place.*give a local"),
        (["build", "{raw}", "-t", "{tok}", "--source", "a b"], 2, r"source 'a b': not a name"),
        (["build", "{raw}", "-t", "{tok}", "--source", "a/b"], 2, r"source 'a/b': not a name"),
        (["build", "{raw}", "-t", "{tok}", "--source", "x" * 101], 2, r"not a name.*100 at most"),
        (["build", "{raw}", "-t", "{tok}", "-o", "{raw}"], 2, r"is a file, and a dataset is a f"),
        (["build", "{raw}", "-t", "{tok}", "-o", "memory://x"], 2, r"gone.*s3://BUCKET/PREFIX"),
        (["build", "~nosuchuser/x", "-t", "{tok}"], 2, r"~nosuchuser names no user"),
        (["build", "{raw}", "-t", "{tok}", "--author", "\udcff"], 2, r"isn't UTF-8.*nothing was"),
        (["build", "{raw}", "-t", "{tok}", "--max-dropped", "nan"], 2, r"nan isn't a share"),
        (["show", "http://host/x"], 2, r"http:// can't hold a dataset.*s3://BUCKET/PREFIX"),
        (["verify", "x", "--sample", "2"], 2, r"2.0 isn't a share.*0 to 1"),
        (["read", "x", "--sample", "9223372036854775807", "--run", "r"], 2, r"is too large"),
        (["read", "x", "--run", "r"], 2, r"--run only says.*give --sample"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(
    run: Run,
    raw: Path,
    tokenizer_path: Path,
    tmp_path: Path,
    words: list[str],
    code: int,
    message: str,
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.orc").write_text("a,b\n1,2\n")
    (tmp_path / "r.yaml").write_text("nam: x\n")
    names = {"tmp": tmp_path, "raw": raw, "tok": tokenizer_path}
    filled = [word.format(**names) for word in words]
    if filled[0] == "build" and "-o" not in filled:
        filled += ["-o", str(tmp_path / "ds")]
    result = run(*filled)
    assert result.code == code
    assert re.fullmatch(rf"datapipe: .*{message}.*\n", result.err), result.err
    assert result.out == ""


def test_debug_adds_the_traceback_and_keeps_the_exit_code(run: Run, tmp_path: Path) -> None:
    result = run("--debug", "show", tmp_path / "nowhere")
    assert result.code == 2
    assert result.err.startswith("Traceback")
    assert re.match(r"datapipe: there is no dataset at", result.err.splitlines()[-1])


def test_a_file_may_be_called_like_a_home(
    run: Run, tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "~.jsonl").write_text('{"text": "x"}\n')
    monkeypatch.chdir(tmp_path)
    assert run("build", "~.jsonl", "-t", tokenizer_path, "-j", 1, "-q").code == 0


def test_escape_sequences_are_printed_as_text(run: Run, dataset: Path) -> None:
    run("tag", dataset, "a", "--author", "\x1b[31mann", "-m", "\x1b]0;title\x07\nnext line")
    shown = run("tag", dataset).out
    assert r"\x1b[31mann" in shown
    assert r"\x1b]0;title\x07\nnext line" in shown


def test_a_partial_verification_says_so(run: Run, dataset: Path) -> None:
    assert run("verify", dataset).out.endswith("every digest is right\n")
    assert run("verify", dataset, "--sample", 0).out.endswith("; no shard was read\n")


def test_completion_names_the_commands() -> None:
    environment = {
        **os.environ,
        "_DATAPIPE_COMPLETE": "complete_bash",
        "COMP_WORDS": "datapipe b",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "datapipe"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        check=False,
    )
    assert done.stdout.split() == ["build"]


@pytest.mark.parametrize("version", ["@7", "@v0", "@nosuch"])
def test_an_unknown_version_says_which_exist(run: Run, dataset: Path, version: str) -> None:
    result = run("show", f"{dataset}{version}")
    assert result.code == 2
    assert "version 1" in result.err or "no dataset" in result.err


def test_an_unknown_document_and_run_are_named(run: Run, dataset: Path) -> None:
    assert run("read", dataset, "--doc", "d999").code == 2
    missing = run("lineage", "batch", dataset, "--run", "nosuch", "--step", 1)
    assert missing.code == 2
    assert "nosuch" in missing.err


def test_too_much_lost_is_exit_1(run: Run, tokenizer_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "x"}\n' + "{\n" * 20)
    result = run("build", path, "-t", tokenizer_path, "-o", tmp_path / "ds", "-j", 1, "-q")
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert "--max-quarantined" in result.err


def test_a_read_only_output_is_one_line(run: Run, raw: Path, tokenizer_path: Path) -> None:
    result = run("build", raw, "-t", tokenizer_path, "-o", "/proc/datapipe", "-j", 1, "-q")
    assert result.code in (1, 2)
    assert result.err.count("\n") == 1
    assert "/proc/datapipe" in result.err


# -- help and documentation


def _commands(command: Any, name: str = "datapipe") -> list[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        return [(name, command)]
    return [
        found
        for child, sub in sorted(command.commands.items())
        for found in _commands(sub, f"{name} {child}")
    ]


ALL_COMMANDS = _commands(typer.main.get_command(application([])))


@pytest.mark.parametrize(("name", "command"), ALL_COMMANDS, ids=[name for name, _ in ALL_COMMANDS])
def test_every_command_has_help_and_stands_in_the_readme(name: str, command: Any) -> None:
    assert command.help
    assert all(getattr(option, "help", None) for option in command.params)
    readme = (ROOT / "README.md").read_text()
    *_, last = name.split()
    assert re.search(
        rf"datapipe ([a-z|]+\|)?(lineage |tokenizer |key )?([a-z|]*\|)?{last}\b", readme
    )


def test_every_command_that_prints_takes_json() -> None:
    lacking = [
        name
        for name, command in ALL_COMMANDS
        if "--json" not in {word for option in command.params for word in option.opts}
    ]
    assert lacking == []


@pytest.mark.parametrize("name", [name.split()[1] for name, _ in ALL_COMMANDS])
def test_a_command_is_there_without_the_others(name: str) -> None:
    alone = typer.main.get_command(application([name]))
    assert name in alone.commands  # type: ignore[attr-defined]


def test_the_version_needs_no_heavy_import() -> None:
    code = (
        "import sys; from datapipe.cli.main import _run; _run(['--version']); "
        "print(sorted({'numpy', 'pyarrow', 'pydantic', 'tokenizers'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["[]"]


def test_the_console_script_runs() -> None:
    code = "from datapipe.cli import main; main(['--version'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("datapipe ")
