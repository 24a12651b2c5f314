"""A tiny language model that really trains: for the demo, examples and tests."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

__all__ = ["TinyLanguageModel", "TinyTraining", "train_step"]


class TinyLanguageModel(nn.Module):
    """Embedding, one causal convolution and a gated layer: learns in seconds on a CPU core.

    Input: int64 [batch, time] token ids; output: float32 [batch, time, vocab_size] logits.
    """

    def __init__(self, vocab_size: int, *, width: int = 64, context: int = 4) -> None:
        super().__init__()
        self.context = context
        self.embed = nn.Embedding(vocab_size, width)
        self.mix = nn.Conv1d(width, 2 * width, kernel_size=context)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, vocab_size)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Returns the logits of the next token at every position."""
        states = self.embed(input_ids).transpose(1, 2)
        mixed = self.mix(nn.functional.pad(states, (self.context - 1, 0)))
        value, gate = mixed.chunk(2, dim=1)
        gated = (states + value * torch.sigmoid(gate)).transpose(1, 2)
        logits: torch.Tensor = self.out(self.norm(gated))
        return logits


def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, batch: Mapping[str, torch.Tensor]
) -> float:
    """Takes one optimizer step on a batch with shifted labels; returns the mean loss in nats."""
    logits = model(batch["input_ids"])
    loss = nn.functional.cross_entropy(
        logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=-100
    )
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return float(loss.detach())


class TinyTraining:
    """A model and its optimizer on the CPU; `step` takes the batches of all ranks of one step.

    Sets torch to one thread: threads that wait for each other on busy cores made a step of this
    size five times as slow (175 ms in place of 30).
    """

    def __init__(self, *, vocab_size: int, seed: int) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.model = TinyLanguageModel(vocab_size)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)

    def step(self, *batches: Mapping[str, torch.Tensor]) -> float:
        """Takes one optimizer step on the rows of all batches; returns the mean loss in nats."""
        names = ("input_ids", "labels")
        joined = {name: torch.cat([batch[name] for batch in batches]) for name in names}
        return train_step(self.model, self.optimizer, joined)
