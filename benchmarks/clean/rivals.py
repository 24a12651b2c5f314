"""Runs a real tool over texts, in its own environment, and says what it decides and measures.

Usage: .rivals/bin/python rivals.py datatrove FILE.json OUT.json
       .rivals-dolma/bin/python rivals.py dolma FILE.json OUT.json
FILE.json is a list of texts; OUT.json becomes {"versions": ..., "seconds": ..., "results": [...]},
one result a text.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import time
import types
from importlib import metadata
from pathlib import Path


def datatrove_results(texts, seconds):
    from datatrove.data import Document
    from datatrove.pipeline import filters

    made = {
        "gopher-repetition@datatrove-0.10": filters.GopherRepetitionFilter(),
        "gopher-quality@datatrove-0.10": filters.GopherQualityFilter(),
        "c4@datatrove-0.10": filters.C4QualityFilter(),
        "c4-any-end@datatrove-0.10": filters.C4QualityFilter(filter_no_terminal_punct=False),
        "fineweb-lines@datatrove-0.10": filters.FineWebQualityFilter(),
    }
    for name, tool in made.items():
        tool.filter(Document(text="Some words to begin with.", id="", metadata={}))
        seconds[name] = 0.0
    results = []
    for text in texts:
        result = {}
        for name, tool in made.items():
            document = Document(text=text, id="", metadata={})
            _forget_words()
            start = time.process_time()
            try:
                kept = tool.filter(document)
            except ZeroDivisionError:
                kept = (False, "ZeroDivisionError")
            seconds[name] += time.process_time() - start
            result[name] = {"reason": None if kept is True else kept[1]}
            if name.startswith("c4") and kept is True:
                result[name]["text"] = document.text
        results.append(result)
    return results


def _forget_words():
    """Empties the cache of split texts, so that each filter is timed alone."""
    from datatrove.utils.text import split_into_parts

    split_into_parts.cache_clear()


def dolma_results(texts, seconds):
    # The taggers' package imports fastText, which is another tagger's.
    sys.modules["fasttext"] = types.SimpleNamespace(train_supervised=None)
    sys.modules["fasttext.FastText"] = types.SimpleNamespace(_FastText=None)
    from dolma.core.data_types import Document
    from dolma.core.registry import TaggerRegistry

    importlib.import_module("dolma.taggers.gopher")
    results = []
    taggers = {name: TaggerRegistry.get(name)() for name in ("gopher_v1", "gopher_v2")}
    seconds.update(dict.fromkeys(taggers, 0.0))
    for text in texts:
        result = {}
        for name, tagger in taggers.items():
            start = time.process_time()
            found = tagger.predict(Document(source="", version="", id="", text=text))
            seconds[name] += time.process_time() - start
            result[name] = {span.type: span.score for span in found.spans}
        results.append(result)
    return results


def main():
    tool, source, target = sys.argv[1:]
    texts = json.loads(Path(source).read_text())
    seconds: dict[str, float] = {}
    run = {"datatrove": datatrove_results, "dolma": dolma_results}[tool]
    results = run(texts, seconds)
    versions = {}
    for name in ("datatrove", "spacy", "dolma", "numpy"):
        if importlib.util.find_spec(name):
            versions[name] = metadata.version(name)
    Path(target).write_text(
        json.dumps({"versions": versions, "seconds": seconds, "results": results}, indent=1)
    )


if __name__ == "__main__":
    main()
