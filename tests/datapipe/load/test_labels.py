from __future__ import annotations

import numpy as np
import pytest
import torch

from datapipe.load.labels import Labels, TensorMaker

TOKENS = np.array([[1, 2, 3, 4], [5, 6, 0, 0]], dtype=np.uint16)
NUM_PAIRS = np.array([3, 1])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param("next", [[2, 3, 4], [6, -100, -100]], id="next"),
        pytest.param("same", [[1, 2, 3], [5, -100, -100]], id="same"),
    ],
)
def test_labels_follow_the_convention(labels: Labels, expected: list[list[int]]) -> None:
    made = TensorMaker(TOKENS, labels=labels, dtype=torch.int64)
    inputs, targets = made.make(NUM_PAIRS, is_short=True)
    assert inputs.tolist() == [[1, 2, 3], [5, 6, 0]]
    assert targets.tolist() == expected
    assert inputs.is_contiguous()
    assert targets.is_contiguous()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
def test_large_ids_survive_the_cast(dtype: torch.dtype) -> None:
    tokens = np.array([[65_535, 65_534, 131_072]], dtype=np.uint32)
    inputs, labels = TensorMaker(tokens, labels="next", dtype=dtype).make(
        np.array([2]), is_short=False
    )
    assert inputs.tolist() + labels.tolist() == [[65_535, 65_534], [65_534, 131_072]]
    assert inputs.dtype == dtype


def test_labels_and_inputs_do_not_share_memory() -> None:
    inputs, labels = TensorMaker(TOKENS, labels="next", dtype=torch.int64).make(
        NUM_PAIRS, is_short=True
    )
    labels.fill_(7)
    assert inputs.tolist() == [[1, 2, 3], [5, 6, 0]]
