"""CBOR, as far as AWS speaks it: what JSON can say, and bytes. Pure.

Tags are written for instants, as whole milliseconds although the standard has seconds there; none is looked at.
Source: RFC 8949; for instants the AWS CBOR protocol of Java's SDK.
"""

from collections.abc import Iterator, Mapping, Sequence
from struct import pack, unpack
from typing import Any

MOST_LEVELS = 100
"""Of arrays and maps in each other."""
_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _OTHER = range(8)
_INSTANT_TAG = 1
_FALSE, _TRUE, _NULL, _UNDEFINED, _FLOAT64 = 20, 21, 22, 23, 27
_SIZES = {24: 1, 25: 2, 26: 4, 27: 8}
_OPEN, _BREAK = 31, b"\xff"
_FLOATS = {25: ">e", 26: ">f", 27: ">d"}
_SIMPLE = {_FALSE: False, _TRUE: True, _NULL: None, _UNDEFINED: None}


class Instant(int):
    """A time in Unix milliseconds."""


def encode(value: Any) -> bytes:
    """Return ``value``, made of what ``decode`` returns, and instants."""
    return b"".join(_encoded(value))


def decode(data: bytes) -> Any:
    """Return the one value in ``data``. Raises ValueError if it is not CBOR, or too deep."""
    reader = _Reader(data)
    value = reader.value(0)
    if reader.at < len(data):
        raise ValueError(f"expected the end at byte {reader.at}, found more")
    return value


def _encoded(value: Any) -> Iterator[bytes]:
    match value:
        case None | bool():
            yield bytes([_OTHER << 5 | (_NULL if value is None else _TRUE if value else _FALSE)])
        case Instant():
            yield _head(_TAG, _INSTANT_TAG)
            yield from _encoded(int(value))
        case int():
            yield _head(_UNSIGNED, value) if value >= 0 else _head(_NEGATIVE, -1 - value)
        case float():
            yield bytes([_OTHER << 5 | _FLOAT64]) + pack(">d", value)
        case bytes():
            yield _head(_BYTES, len(value)) + value
        case str():
            text = value.encode()
            yield _head(_TEXT, len(text)) + text
        case Mapping():
            yield _head(_MAP, len(value))
            for name, inner in value.items():
                yield from _encoded(name)
                yield from _encoded(inner)
        case Sequence():
            yield _head(_ARRAY, len(value))
            for inner in value:
                yield from _encoded(inner)


def _head(kind: int, number: int) -> bytes:
    if number < min(_SIZES):
        return bytes([kind << 5 | number])
    for code, size in _SIZES.items():
        if number < 1 << (8 * size):
            return bytes([kind << 5 | code]) + number.to_bytes(size)
    raise ValueError(f"cannot encode {number}: expected 64 bits at most")


class _Reader:
    """Reads one value after the other, from ``at`` on."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def value(self, level: int) -> Any:
        if level > MOST_LEVELS:
            raise ValueError(f"expected {MOST_LEVELS} levels at most")
        kind, code = divmod(self._take(1)[0], 1 << 5)
        if kind == _OTHER:
            return self._other(code)
        if code == _OPEN:
            return self._open(kind, level)
        number = self._number(code)
        if kind in (_UNSIGNED, _NEGATIVE):
            return number if kind == _UNSIGNED else -1 - number
        if kind in (_BYTES, _TEXT):
            return self._string(kind, number)
        if kind == _ARRAY:
            return [self.value(level + 1) for _ in range(number)]
        if kind == _MAP:
            return dict([self._pair(level) for _ in range(number)])
        return self.value(level + 1)

    def _open(self, kind: int, level: int) -> Any:
        """Return a value that goes on until a break."""
        if kind in (_BYTES, _TEXT):
            pieces = [*self._pieces(kind)]
            return b"".join(pieces) if kind == _BYTES else "".join(pieces)
        if kind == _ARRAY:
            return [self.value(level + 1) for _ in self._until_break()]
        if kind == _MAP:
            return dict([self._pair(level) for _ in self._until_break()])
        raise ValueError(f"expected a length before byte {self.at}, found none")

    def _pieces(self, kind: int) -> Iterator[Any]:
        for _ in self._until_break():
            found, code = divmod(self._take(1)[0], 1 << 5)
            if found != kind:
                raise ValueError(f"expected a piece of a string before byte {self.at}, found another kind")
            yield self._string(kind, self._number(code))

    def _until_break(self) -> Iterator[None]:
        while self._data[self.at : self.at + 1] != _BREAK:
            yield
        self.at += 1

    def _pair(self, level: int) -> tuple[str, Any]:
        match self.value(level + 1):
            case str() as name:
                return name, self.value(level + 1)
        raise ValueError(f"expected a name before byte {self.at}, found another kind")

    def _string(self, kind: int, size: int) -> Any:
        data = self._take(size)
        return data if kind == _BYTES else data.decode()

    def _other(self, code: int) -> Any:
        if code in _FLOATS:
            return unpack(_FLOATS[code], self._take(_SIZES[code]))[0]
        if code not in _SIMPLE:
            raise ValueError(f"expected a value before byte {self.at}, found none")
        return _SIMPLE[code]

    def _number(self, code: int) -> int:
        if code < min(_SIZES):
            return code
        if code not in _SIZES:
            raise ValueError(f"expected a length before byte {self.at}, found none")
        return int.from_bytes(self._take(_SIZES[code]))

    def _take(self, size: int) -> bytes:
        found = self._data[self.at : self.at + size]
        if len(found) < size:
            raise ValueError(f"expected {size} bytes more at byte {self.at}, found {len(found)}")
        self.at += size
        return found
