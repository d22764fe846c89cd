"""What is shown of text that others made."""

import pytest

from kcl_py.printable import instant, one_line, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("é 日本 ✓ a\\b", "é 日本 ✓ a\\b"),
        ("\x1b[31m\x07\x00\x7f\x9b", r"\x1b[31m\x07\x00\x7f\x9b"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\u202e\u200b\u2028\udcff", r"\u202e\u200b\u2028\udcff"),
    ],
)
def test_only_what_cannot_be_printed_is_escaped(text: str, shown: str) -> None:
    """Controls, directions, lone surrogates; letters of all languages stay."""
    assert printable(text) == shown
    assert shown.isprintable()


def test_one_line_is_one_line() -> None:
    """Line breaks of any kind become spaces; the rest is escaped."""
    assert one_line(" two\r\nlines\u2028and\x85more \x1b[0m") == r"two lines and more \x1b[0m"


@pytest.mark.parametrize(
    ("at_ms", "written"),
    [(0, "1970-01-01T00:00:00.000Z"), (1_795_838_400_250, "2026-11-28T04:00:00.250Z"), (10**30, f"{10**30} ms")],
)
def test_instants_are_written_for_people_and_absurd_ones_as_they_are(at_ms: int, written: str) -> None:
    """A row can hold anything, and is shown all the same."""
    assert instant(at_ms) == written
