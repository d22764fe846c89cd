"""What ``flights_spark.py`` has left in its output folder: Spark's checkpoint and the rows of each batch."""

from pathlib import Path

COLUMNS = ["time_hour", "carrier", "flight"]


def identities(out: Path) -> list[str]:
    """Return the flight of each row, repetitions included."""
    if not (out / "rows").exists():
        return []
    import pyarrow.dataset as parquet  # slow to load, and needed only once all has come

    rows = parquet.dataset(str(out / "rows"), format="parquet").to_table(columns=COLUMNS).to_pydict()
    return [" ".join(map(str, row)) for row in zip(*(rows[name] for name in COLUMNS), strict=True)]


def is_in_a_batch(out: Path) -> bool:
    """Whether a batch has been planned that is not finished. Not the first: Spark begins with an empty one."""
    return _newest(out, "offsets") > _newest(out, "commits") >= 0


def _newest(out: Path, log: str) -> int:
    folder = out / "checkpoint" / log
    return max((int(path.name) for path in folder.glob("*") if path.name.isdigit()), default=-1)
