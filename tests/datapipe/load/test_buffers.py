from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from datapipe.load.buffers import TensorPool


def take(pool: TensorPool) -> torch.Tensor:
    tensor, _ = pool.take()
    return tensor


def test_memory_that_nobody_holds_is_used_again() -> None:
    pool = TensorPool((2, 3), dtype=torch.int64)
    first = take(pool).data_ptr()
    assert take(pool).data_ptr() == first


@pytest.mark.parametrize(
    "hold",
    [
        pytest.param(lambda tensor: tensor, id="tensor"),
        pytest.param(lambda tensor: tensor[1, 1:], id="view"),
        pytest.param(lambda tensor: tensor.numpy(), id="array"),
        pytest.param(lambda tensor: tensor.detach().reshape(-1), id="detached"),
        pytest.param(lambda tensor: tensor.__dlpack__(), id="dlpack"),
        pytest.param(lambda tensor: tensor.untyped_storage(), id="storage"),
    ],
)
def test_memory_that_somebody_holds_is_never_used_again(
    hold: Callable[[torch.Tensor], Any],
) -> None:
    pool = TensorPool((2, 3), dtype=torch.int64)
    tensor = take(pool)
    pointer = tensor.data_ptr()
    held = hold(tensor)
    del tensor
    later = [take(pool) for _ in range(6)]
    assert pointer not in {tensor.data_ptr() for tensor in later}
    del held, later
    assert pointer in {tensor.data_ptr() for tensor in [take(pool) for _ in range(4)]}


def test_a_pool_keeps_only_a_few() -> None:
    pool = TensorPool((8,), dtype=torch.int32)
    held = [take(pool) for _ in range(20)]
    assert len({tensor.data_ptr() for tensor in held}) == 20
    assert len(pool._arrays) == 4
