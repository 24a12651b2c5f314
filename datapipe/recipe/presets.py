"""Recipes that the program brings along."""

from __future__ import annotations

from collections.abc import Sequence

from datapipe.recipe.fields import Fields
from datapipe.recipe.model import Input, Recipe, StageSpec, Tokenize
from datapipe.recipe.problems import refusing

__all__ = ["DEFAULT_STAGES", "bare_recipe", "starter_recipe"]

DEFAULT_STAGES = ("normalize", "drop_empty", "dedup_exact")
"""What a build without a recipe does."""

_STARTER = """\
# What `datapipe build` is to do with this file. Paths are relative to this file.
name: my-dataset

inputs:
  - source: documents               # one component of the mixture; list more with further entries
    paths: ["data"]                 # files, folders, or patterns such as "crawl/**/*.jsonl.gz"
    # format: jsonl                 # or parquet, warc, html, text; left out: seen from the file
    # licence: CC0-1.0              # kept with every document
    # fields:                       # where things stand in a record; `a.b` is `b` inside `a`
    #   text: text
    #   id: id
    #   url: url
    #   date: date
    #   language: language
    # root: data                    # what file names are relative to

stages:                             # in this order; leave out what you don't want
  - normalize: {unicode: NFC, control_characters: strip}
  - drop_empty                      # documents with nothing visible
  - dedup_exact                     # equal texts, as they stand here; one of each stays

tokenize:
  tokenizer: tokenizer.json         # or a .model, tekken.json, .tiktoken, a folder, cl100k_base
  # eos: "<|endoftext|>"            # left out: the one that the tokenizer names
  append_eos: true                  # close every document with it
  # backend: auto                   # the fastest library that gives the reference's ids
  # check_one_in: 10000             # of so many documents one is encoded by the reference too

output:
  shard_bytes: 64MiB                # about the size of one shard
  shuffle_seed: 0                   # another seed, another order of documents
  # index: true                     # find documents by id, URL, domain; left out: as before

guards:                             # over these the build stops and commits nothing
  max_quarantined_fraction: 0.001   # records that can't be read (from 10 such records on)
  max_dropped_fraction_per_source: 0.9
  # allow_damaged: true             # end with exit code 0 though input files are cut or damaged
"""


def starter_recipe() -> str:
    """Returns a commented recipe to start from, as YAML."""
    return _STARTER


def bare_recipe(
    paths: Sequence[str],
    *,
    tokenizer: str | None,
    eos: str | None = None,
    source: str = "documents",
    text_field: str = "text",
    name: str = "dataset",
) -> Recipe:
    """Returns the recipe of a build that is given nothing but paths and a tokenizer.

    Raises:
        RecipeError: a value is none that a recipe could have.
    """
    with refusing({"text": "the text field"}):
        return Recipe(
            name=name,
            inputs=[Input(source=source, paths=list(paths), fields=Fields(text=text_field))],
            stages=[StageSpec.model_validate(stage) for stage in DEFAULT_STAGES],
            tokenize=Tokenize(tokenizer=tokenizer, eos=eos),
        )
