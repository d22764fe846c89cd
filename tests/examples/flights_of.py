"""Flights made up for a test."""

from examples.demo.dataset import Flight

ROW = {
    "time_hour": "2013-01-01T10:00:00Z",
    "carrier": "UA",
    "flight": "7",
    "tailnum": "N14228",
    "dep_delay": "2",
    "month": "1",
}


def a_flight(**values: str) -> Flight:
    """Return a flight; ``values`` are texts as in the file."""
    return Flight(ROW | values)
