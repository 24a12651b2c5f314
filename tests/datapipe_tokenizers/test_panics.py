from __future__ import annotations

import pytest

from datapipe_tokenizers.panics import leave_interruptions


class PanicException(BaseException):  # as pyo3 calls it
    pass


class Stop(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError("x"), PanicException("x")], ids=repr)
def test_a_library_that_failed_is_the_callers_to_explain(error: BaseException) -> None:
    leave_interruptions(error)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), Stop()], ids=repr)
def test_an_interruption_goes_on(error: BaseException) -> None:
    with pytest.raises(type(error)):
        leave_interruptions(error)
