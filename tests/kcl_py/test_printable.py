"""What is shown of text that others made."""

import pytest

from kcl_py.printable import one_line, printable


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
