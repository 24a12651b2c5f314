"""The result as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["as_markdown"]

_TITLES = {
    "tokenize": "Read, tokenize, shuffle, write",
    "clean": "The same with normalize, drop_empty and dedup_exact before",
}


def as_markdown(result: Mapping[str, Any]) -> str:
    """Returns the page; medians, with min and max in brackets."""
    machine = result["machine"]
    lines = [
        f"# {result['question']}",
        "",
        f"`{result['command']}` on {machine['processor']}, {machine['cores']} cores, load average "
        f"{', '.join(str(load) for load in machine['load_averages'])} before and after the parts; "
        f"{result['runs']} runs, interleaved, page cache warm; median (min to max). "
        + ", ".join(f"{name} {version}" for name, version in result["versions"].items())
        + ".",
    ]
    for name, part in result["parts"].items():
        lines += ["", f"## {_TITLES[name]}", "", *_part(part)]
    lines += ["", "## Documents that programs treat differently", "", *_tricky(result["tricky"])]
    lines += ["", "## Start", "", "| command | wall s | CPU s | peak RSS MB |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {_three(row['wall_seconds'])} | {_three(row['cpu_seconds'])} "
        f"| {row['peak_rss_mb']['median']:.0f} |"
        for name, row in result["start"].items()
    ]
    return "\n".join([*lines, ""])


def _part(part: Mapping[str, Any]) -> list[str]:
    given, rows = part["input"], part["results"]
    lines = [
        f"{given['documents']:,} documents, {given['text_bytes'] / 1e6:.1f} MB of text in "
        f"{given['files']} zstd files ({given['stored_bytes'] / 1e6:.1f} MB).",
        "",
        "| | MB/s of text | wall s | CPU s | peak RSS MB |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {_three(row['text_mb_per_second'])} | {_three(row['wall_seconds'])} "
        f"| {_three(row['cpu_seconds'])} | {row['peak_rss_mb']['median']:.0f} |"
        for name, row in rows.items()
    ]
    lines += [
        "",
        "Medians of ratios within a run, above 1 where datapipe is better:",
    ]
    for workers in ("1 worker", "2 workers"):
        ours, theirs = rows[f"datapipe, {workers}"], rows[f"datatrove, {workers}"]
        lines.append(
            f"- {workers}: speed {_ratio(theirs, ours, 'wall_seconds'):.2f}, "
            f"CPU {_ratio(theirs, ours, 'cpu_seconds'):.2f}, "
            f"memory {_ratio(theirs, ours, 'peak_rss_mb'):.2f}"
        )
    return [*lines, "", *_comparison(part["comparison"])]


def _ratio(above: Mapping[str, Any], below: Mapping[str, Any], name: str) -> float:
    pairs = zip(above["runs"], below["runs"], strict=True)
    ratios = sorted(a[name] / b[name] for a, b in pairs)
    middle = len(ratios) // 2
    return float((ratios[middle] + ratios[~middle]) / 2)


def _comparison(found: Mapping[str, Any]) -> list[str]:
    lines = [
        f"Compared: {found['documents_datapipe']:,} documents of datapipe with "
        f"{found['tokens_datapipe']:,} tokens, {found['documents_datatrove']:,} of datatrove with "
        f"{found['tokens_datatrove']:,}; {found['same']:,} have the same ids."
    ]
    lines += [
        f"- {count} documents: {kind} ({', '.join(found['examples'][kind])})"
        for kind, count in found["different"].items()
    ]
    return lines


def _tricky(tricky: Mapping[str, Any]) -> list[str]:
    lines = ["| kind | same | differences | datatrove's error |", "|---|---|---|---|"]
    lines += [
        f"| {kind} | {found['same']} | "
        + "; ".join(f"{count} {what}" for what, count in found["different"].items())
        + f" | {found['datatrove_error'].splitlines()[0] if found['datatrove_error'] else ''} |"
        for kind, found in tricky["kinds"].items()
    ]
    return [*lines, "", f"Quarantined by datapipe: {'; '.join(tricky['quarantined'])}."]


def _three(values: Mapping[str, float]) -> str:
    return f"{values['median']:.2f} ({values['min']:.2f} to {values['max']:.2f})"
