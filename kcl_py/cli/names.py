"""Names that are too long for their column, shortened so that they still differ. Pure."""

from collections.abc import Collection


def shortened(names: Collection[str], width: int) -> dict[str, str]:
    """Return for each name what is shown of it: ``width`` characters, or the few more that keep them apart.

    The end stays, since workers' names begin with those of their hosts; of names that end alike, the beginning, or
    both.
    """
    longest = max(map(len, names), default=0)
    for room in range(max(width, 2), longest):
        for cut in (_end, _beginning, _both):
            shown = {name: name if len(name) <= room else cut(name, room) for name in names}
            if len(set(shown.values())) == len(shown):
                return shown
    return {name: name for name in names}


def _end(name: str, room: int) -> str:
    return f"…{name[1 - room :]}"


def _beginning(name: str, room: int) -> str:
    return f"{name[: room - 1]}…"


def _both(name: str, room: int) -> str:
    first = (room - 1) // 2
    return f"{name[:first]}…{name[first + 1 - room :]}"
