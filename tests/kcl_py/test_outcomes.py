"""What a processor may say of a record, and what it may not."""

from typing import Any

import pytest

from kcl_py import Retry


@pytest.mark.parametrize("after_s", [0, 0.5, 900, None])
def test_record_can_be_put_off_for_up_to_a_quarter_of_an_hour(after_s: float | None) -> None:
    """Both ends are allowed, and no pause at all."""
    assert Retry(after_s).after_s == after_s


@pytest.mark.parametrize("after_s", [900.1, -1, float("nan"), float("inf"), "5"])
def test_record_that_would_be_put_off_for_longer_is_refused_with_the_reason(after_s: Any) -> None:
    """The checkpoint of its shard would stand still for as long."""
    with pytest.raises(ValueError, match=r"cannot retry after .* s: expected 0 to 900 s, since the checkpoint"):
        Retry(after_s=after_s)
