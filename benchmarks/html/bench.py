"""The stage extract_html beside resiliparse alone, on the same pages."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from fastwarc.warc import ArchiveIterator, WarcRecordType
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding

from datapipe.clean import ExtractHtml
from datapipe.clean.html.structure import measure
from datapipe.documents import batch_from_columns

ODD = {
    "colspan": "<table>" + '<tr><td colspan="9007199254740991">a' * 100,
    "1,000,000 rows": "<table>" + "<tr><td>x" * 1_000_000,
    "240,000 rows": "<table>" + "<tr><td>x" * 240_000,
    "100,000 <div>": "<div>" * 100_000,
    "500 <div>": "<div>" * 500 + "<p>x" * 100_000,
    "unclosed": "<b>x<p>" * 100_000,
    "40,000 attributes": "<p " + " ".join(f"a{i}=1" for i in range(40_000)) + ">",
    "256 attributes": ("<p " + " ".join(f"a{i}=1" for i in range(250)) + ">") * 7_000,
    "giant attribute": f"<p title={'a' * 15_000_000}>x",
    "entities": "&amp;&notit;&#x1F600;" * 700_000,
    "lists": "<ul><li>" * 200 + "<br>x" * 40_000,
}


def best(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def html_pages(paths: list[str]) -> Iterator[str]:
    for path in paths:
        with open(path, "rb") as file:  # noqa: PTH123 fastwarc wants one
            for record in ArchiveIterator(file, record_types=WarcRecordType.response):
                data = record.reader.read()
                yield bytes_to_str(data, detect_encoding(data))


def as_batch(pages: list[str]) -> pa.RecordBatch:
    rows = len(pages)
    return batch_from_columns(
        pages,
        source="s",
        source_file="f",
        offsets=range(rows),
        lengths=[1] * rows,
        media_type=["text/html"] * rows,
    )


def alone(texts: pa.Array) -> list[str]:
    return [extract_plain_text(t.as_py(), main_content=True, alt_texts=False) for t in texts]


def compare(paths: list[str], runs: int) -> None:
    batch, stage = as_batch(list(html_pages(paths))), ExtractHtml()
    texts = batch.column("text")
    assert stage.apply(batch).batch.column("text").to_pylist() == alone(texts)
    times = [
        (
            best(lambda: stage.apply(batch)),
            best(lambda: alone(texts)),
            best(lambda: measure(texts, np.arange(len(texts)), most_depth=513)),
        )
        for _ in range(runs)
    ]
    ours, theirs, walk = (min(column) for column in zip(*times, strict=True))
    print(
        f"{len(texts):,} pages, {texts.nbytes / 1e6:.1f} MB: stage {ours:.2f} s, resiliparse alone "
        f"{theirs:.2f} s, ratio {ours / theirs:.2f}; walk over the tags {walk:.3f} s"
    )


def odd() -> None:
    stage = ExtractHtml()
    for name, page in ODD.items():
        start = time.process_time()
        result = stage.apply(as_batch([page]))
        seconds = time.process_time() - start
        rules = result.dropped["rule"].to_pylist() or ["kept"]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"{name}: {len(page) / 1e6:.2f} MB, {seconds:.2f} s, {rules[0]}, peak {peak} MiB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--odd", action="store_true")
    options = parser.parse_args()
    if options.files:
        compare(options.files, options.runs)
    if options.odd:
        odd()


if __name__ == "__main__":
    main()
