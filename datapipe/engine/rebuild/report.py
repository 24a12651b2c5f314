"""What rebuilding came to, for people and machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__ = ["Difference", "RebuildReport", "Step", "Verdict"]


class Verdict(Enum):
    """How the rebuilt version compares with the recorded one."""

    IDENTICAL = "identical"
    """The manifest is byte for byte the same, and so is every object that it names."""
    LOGICALLY_IDENTICAL = "logically identical"
    """Every token and every row is the same; bytes of tables or the environment aren't."""
    DIFFERENT = "different"
    NOT_REBUILT = "not rebuilt"
    """This program can't carry out the recorded recipe, so there is nothing to compare."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """The first thing that isn't as it was."""

    cause: str
    """ "input", "library", "code" or "recipe"."""
    what: str
    """One sentence."""
    where: dict[str, Any] = field(default_factory=dict)
    """The place, and the values recorded and rebuilt, as JSON values."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One version's own build or append, done again on the version before as it is recorded."""

    version: int
    operation: str
    verdict: Verdict
    manifest: str
    """As recorded, hex."""
    rebuilt: str | None
    """The rebuilt one's; None: nothing was built."""
    num_inputs: int
    bytes_in: int
    environment: dict[str, tuple[str | None, str | None]]
    """What has another version now: recorded and present one, None where it wasn't there."""
    other_bytes: tuple[str, ...] = ()
    """Kinds of objects whose bytes differ although their rows don't."""
    difference: Difference | None = None

    @property
    def reason(self) -> str:
        """Why it isn't identical, in words; empty where it is."""
        if self.difference is not None:
            return (
                f"{self.difference.what}; cause: {_CAUSES[self.difference.cause]}{self._libraries}"
            )
        if self.verdict is Verdict.IDENTICAL:
            return ""
        if not self.other_bytes:
            return (
                f"all objects are the same; the manifest names another environment{self._libraries}"
            )
        return f"same rows, other bytes of {', '.join(self.other_bytes)}{self._libraries}"

    @property
    def _libraries(self) -> str:
        changed = [
            f"{name} {then or 'absent'} then, {now or 'absent'} now"
            for name, (then, now) in self.environment.items()
        ]
        return f" ({'; '.join(changed)})" if changed else ""

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        difference = self.difference
        return {
            "version": self.version,
            "operation": self.operation,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "manifest": {"recorded": self.manifest, "rebuilt": self.rebuilt},
            "inputs": {"files": self.num_inputs, "bytes": self.bytes_in},
            "environment": {name: list(pair) for name, pair in self.environment.items()},
            "other_bytes": list(self.other_bytes),
            "difference": None
            if difference is None
            else {"cause": difference.cause, "what": difference.what, "where": difference.where},
        }


_CAUSES = {
    "input": "an input changed",
    "library": "a library changed",
    "code": "the code changed",
    "recipe": "the recorded recipe can't be carried out by this program",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class RebuildReport:
    """The steps that were done again, oldest first, up to the first one with a difference."""

    dataset: str
    version: int
    steps: Sequence[Step]
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """The worst of the steps'."""
        order = list(Verdict)
        return max((step.verdict for step in self.steps), key=order.index)

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON values, as `--json` prints it."""
        return {
            "dataset": self.dataset,
            "version": self.version,
            "verdict": self.verdict.value,
            "steps": [step.to_json() for step in self.steps],
            "seconds": round(self.seconds, 3),
        }
