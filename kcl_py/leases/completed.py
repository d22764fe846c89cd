"""Which rows of shards that were read to their end may be deleted. Pure; in words: docs/leases.md, "Deletion".

A row at its end says two things: its children may begin, and the shard must not be read again. Once every child has
progress of its own, their rows say both. Mirrors: the Java client's LeaseCleanupManager.
"""

from collections import defaultdict, deque
from collections.abc import Container, Mapping

from kcl_py.leases.row import LeaseRow


def deletable(rows: Mapping[str, LeaseRow], settled: Container[str]) -> tuple[LeaseRow, ...]:
    """Find the rows to delete, in the order in which they must go: parents first.

    Args:
        rows: the lease table.
        settled: the rows that ended long enough ago for every request about them to have arrived.
    """
    children = _children(rows)
    left, found = dict(rows), []
    waiting = deque(sorted(key for key, row in rows.items() if row.has_ended and key in settled))
    while waiting:
        key = waiting.popleft()
        if key in left and key in settled and _is_done_with(left[key], rows, left, children[key]):
            found.append(left.pop(key))
            waiting.extend(sorted(children[key]))
    return tuple(found)


def _children(rows: Mapping[str, LeaseRow]) -> Mapping[str, set[str]]:
    children: dict[str, set[str]] = defaultdict(set)
    for key, row in rows.items():
        children[key].update(row.children)
        for parent in row.parents:
            children[parent].add(key)
    return children


def _is_done_with(row: LeaseRow, rows: Mapping[str, LeaseRow], left: Container[str], children: set[str]) -> bool:
    """Whether the children tell all that the row tells; one that names none is kept: nobody can know."""
    if not row.has_ended or not row.children or any(parent in left for parent in row.parents):
        return False
    return all(child in rows and rows[child].has_progress for child in children)
