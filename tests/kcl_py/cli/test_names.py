"""Names that are cut are still told apart."""

import pytest

from kcl_py.cli.names import shortened


def test_the_host_goes_first() -> None:
    """It is the same for many; what a worker has of its own is at the end."""
    names = [
        "ip-10-0-0-12.internal-71-aaaaaaaa/1e24ad3c",
        "ip-10-0-0-12.internal-72-bbbbbbbb/ed272442",
        "web-1/00000000",
    ]
    assert list(shortened(names, 14).values()) == ["…aaaa/1e24ad3c", "…bbbb/ed272442", "web-1/00000000"]


@pytest.mark.parametrize(
    "names",
    [
        ["ip-10-0-0-1.eu-west-1.compute.internal", "ip-10-0-0-2.eu-west-1.compute.internal"],
        ["host-of-the-first-zone-1-worker", "host-of-the-first-zone-2-worker", "most-of-the-first-zone-1-worker"],
        ["x" * 20, "x" * 21],
        ["…ccccccccc", "aaaaaaaaaaaaccccccccc"],
    ],
)
def test_names_that_end_alike_still_differ(names: list[str]) -> None:
    """As those of Java workers can; then another part is kept, or more."""
    shown = shortened(names, 10)
    assert list(shown) == names
    assert len(set(shown.values())) == len(names)


def test_names_for_which_there_is_room_are_whole() -> None:
    """Also if there is none at all."""
    assert shortened(["alpha", "beta"], 5) == {"alpha": "alpha", "beta": "beta"}
    assert shortened([], -3) == {}
