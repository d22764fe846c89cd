"""The table of events is what the code logs."""

import ast
import re
from dataclasses import dataclass

from tests.docs.pages import DOCS, PAGES, modules, read, rows

LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, order=True)
class Event:
    """An event as it is logged, or as it is documented."""

    name: str
    level: str
    fields: tuple[str, ...]


def fields_of(call: ast.Call) -> tuple[str, ...]:
    """Return the names of what is logged with an event; for ``**{…}`` the keys that are written there."""
    names = {keyword.arg for keyword in call.keywords} - {None, "exc_info"}
    for keyword in call.keywords:
        if keyword.arg is None:
            dicts = [node for node in ast.walk(keyword.value) if isinstance(node, ast.Dict)]
            names |= {str(key.value) for node in dicts for key in node.keys if isinstance(key, ast.Constant)}
    return tuple(sorted(map(str, names)))


def logged() -> set[Event]:
    """Find every call ``<logger>.<level>("kcl_py.…", …)``."""
    found = set()
    for _, module in modules():
        for node in ast.walk(module):
            match node:
                case ast.Call(func=ast.Attribute(attr=level), args=[ast.Constant(value=str(name))]) if (
                    level in LEVELS and name.startswith("kcl_py.")
                ):
                    found.add(Event(name, level, fields_of(node)))
    return found


def test_documented_events_are_those_of_the_code() -> None:
    """Same names, levels and fields; each is said once."""
    table = rows(DOCS / "events.md", "Event")
    documented = [Event(row[0], row[1], tuple(sorted(row[2].replace(",", "").split()))) for row in table]
    assert sorted(documented) == sorted(logged())


def test_every_event_says_what_it_means() -> None:
    """And every warning or error what to do about it."""
    for name, level, _, meaning, advice in rows(DOCS / "events.md", "Event"):
        assert meaning, name
        assert advice or level not in ("warning", "error"), name


def test_every_event_that_is_named_exists() -> None:
    """On all pages: those for three in the morning above all."""
    names = {event.name for event in logged()}
    groups = "|".join(sorted({name.split(".")[1] for name in names}))
    named = {name for page in PAGES for name in re.findall(rf"kcl_py\.(?:{groups})\.[a-z_]+", read(page))}
    assert sorted(named - names) == []
