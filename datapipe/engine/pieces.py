"""The passes of a build, one after the other, over all its units: from inputs to shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from datapipe.dataset import Repository, ShardRecord, sha256_hex
from datapipe.engine import merge
from datapipe.engine.damage import DamagedFile, apart_from_damage, damaged_files, refuse_unreadable
from datapipe.engine.encode_unit import TokenizerFiles, keep_tokenizer
from datapipe.engine.known import KnownInputs, known_documents, known_signatures
from datapipe.engine.ledger import Ledger, add_up, check_guards, check_kept
from datapipe.engine.leftovers import SHARED_STAGE
from datapipe.engine.passes import Passes, Scanned, StageList
from datapipe.engine.sources import SourceInputs
from datapipe.engine.stages import StageCall, stage_calls
from datapipe.engine.survivors import Removal
from datapipe.engine.work import Piece, Work, piece_key
from datapipe.recipe import Recipe
from datapipe_tokenizers import Tokenizer

__all__ = ["PieceMaker", "Pieces"]

_GLOBAL_STAGE = "dedup_exact"
_EXAMPLES = 3  # quarantined records named in an error


@dataclass(frozen=True, kw_only=True, slots=True)
class Pieces:
    """What the passes over the units left behind."""

    scanned: list[Scanned]
    removals: list[Removal]
    encoded: list[merge.Encoded]
    ledgers: list[Ledger]
    quarantine: pa.Table
    inputs: pa.Table
    damaged: tuple[DamagedFile, ...]
    compared: bool

    @property
    def truncated(self) -> tuple[str, ...]:
        """Names of the files that end in the middle."""
        names = {
            file
            for item in self.scanned
            for file, counts in item.record["files"].items()
            if counts["truncated"]
        }
        return tuple(sorted(names))

    @property
    def special_text(self) -> dict[str, int]:
        """Documents with literal text of special tokens, as `count_special_text` counts them."""
        counts = Counter({"documents": 0, "with_eos": 0})
        for _, record in self.encoded:
            counts.update(record["special_text"])
        return dict(counts)


class PieceMaker:
    """Makes the pieces of one build.

    Args:
        recipe: what to do.
        tokenizer: the recipe's, loaded.
        known: what is appended to; None: nothing.
        work: where pieces are kept.
        passes: what makes them.
        files: digests of the files that stages read, by path.
    """

    def __init__(
        self,
        recipe: Recipe,
        tokenizer: Tokenizer,
        *,
        known: KnownInputs | None,
        work: Work,
        passes: Passes,
        files: Mapping[str, str],
    ) -> None:
        self._recipe = recipe
        self._tokenizer = tokenizer
        self._known = known
        self._base = known.base if known is not None else None
        self._work = work
        self._passes = passes
        self._files = files

    def make(self, sources: Sequence[SourceInputs], digests: Mapping[str, str]) -> Pieces:
        """Takes the inputs through all passes over units.

        Raises:
            GuardError: more was lost than the recipe allows.
        """
        before, after, compare = split_stages(stage_calls(self._recipe, self._files))
        scanned = self._passes.scan(sources, digests, stages=before, compare=compare)
        quarantine = merge.quarantine_table(self._work, scanned)
        inputs = merge.inputs_table(sources, digests, scanned)
        damaged = damaged_files(inputs, quarantine)
        removals = self._passes.remove(
            scanned,
            known=known_documents(self._known, sources),
            compare=compare,
            sources=[source.source for source in sources],
            existing=known_signatures(self._base, compare=compare),
        )
        self._check(sources, add_up(sources, scanned, removals, []), quarantine, damaged)
        encoded = self._encode(scanned, removals, after)
        ledgers = add_up(sources, scanned, removals, [record for _, record in encoded])
        self._check(sources, ledgers, quarantine, damaged)
        return Pieces(
            scanned=scanned,
            removals=removals,
            encoded=encoded,
            ledgers=ledgers,
            quarantine=quarantine,
            inputs=inputs,
            damaged=damaged,
            compared=compare,
        )

    def _check(
        self,
        sources: Sequence[SourceInputs],
        ledgers: Sequence[Ledger],
        quarantine: pa.Table,
        damaged: Sequence[DamagedFile],
    ) -> None:
        guards = self._recipe.guards
        check_guards(ledgers, guards, examples=_examples(apart_from_damage(quarantine)))
        refuse_unreadable(damaged, sources, ledgers, allowed=guards.allow_damaged)
        if not guards.allow_damaged:
            check_kept(ledgers, examples=_examples(quarantine))

    def _encode(
        self, scanned: Sequence[Scanned], removals: Sequence[Removal], stages: StageList
    ) -> list[merge.Encoded]:
        settings = {
            "stages": stages,
            "append_eos": self._recipe.tokenize.append_eos,
            "check_one_in": self._recipe.tokenize.check_one_in,
            "shard_tokens": self._shard_tokens,
            "shuffle_seed": self._recipe.output.shuffle_seed,
        }
        return self._passes.encode(
            scanned, removals, tokenizer=self._tokenizer_files(), settings=settings
        )

    def _tokenizer_files(self) -> TokenizerFiles:
        files = self._tokenizer.files
        key = piece_key(
            pass_="tokenizer",
            vocabulary=self._tokenizer.vocabulary,
            files={name: sha256_hex(data) for name, data in files.items()},
        )
        piece = Piece(SHARED_STAGE, key)
        for name, data in files.items():
            self._work.put_bytes(piece, name, memoryview(data))
        self._passes.used.add(piece)
        named = TokenizerFiles(
            piece,
            tuple(sorted(files)),
            self._tokenizer.eos_id,
            self._tokenizer.backend,
            self._tokenizer.special_text,
            self._tokenizer.facts,
        )
        keep_tokenizer(named, self._tokenizer)
        return named

    @property
    def _shard_tokens(self) -> int:
        return max(1, self._recipe.output.shard_bytes // self._tokenizer.token_dtype.itemsize)

    def write_shards(self, repository: Repository, pieces: Pieces) -> list[ShardRecord]:
        """Writes the shards of every source, numbered on behind those that are there."""
        units: dict[str, list[Piece]] = {}
        for item, (piece, _) in zip(pieces.scanned, pieces.encoded, strict=True):
            units.setdefault(item.unit.source, []).append(piece)
        parents = self._base.sources if self._base is not None else ()
        return self._passes.write_shards(
            repository,
            units,
            first_numbers={source.name: source.num_shards for source in parents},
            shard_tokens=self._shard_tokens,
            dtype=self._tokenizer.token_dtype,
        )


def split_stages(calls: Sequence[StageCall]) -> tuple[StageList, StageList, bool]:
    """Returns the stages before and behind the one that looks at all documents, if there is one."""
    stages = tuple(calls)
    names = [stage.name for stage in stages]
    if _GLOBAL_STAGE not in names:
        return stages, (), False
    place = names.index(_GLOBAL_STAGE)
    return stages[:place], stages[place + 1 :], True


def _examples(quarantine: pa.Table) -> list[str]:
    columns = ("source_file", "source_offset", "error")
    first = quarantine.slice(0, _EXAMPLES).select(list(columns)).to_pylist()
    return [f"{row['source_file']}:{row['source_offset']} {row['error']}" for row in first]
