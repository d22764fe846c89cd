"""Flights and mean departure delay by carrier, as a Spark streaming query over the stream of ``make demo``.

Each micro-batch is stored under its number: its rows as Parquet, and its sums by carrier. After a crash Spark runs the
batch that was under way again, with the same number and the same rows, so it replaces what it left: exactly once. The
running figures are the sum over all batches, in ``carriers.json``.

python examples/flights_spark.py --endpoint http://127.0.0.1:4567 --out /tmp/flights
"""

import argparse
import json
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_bridge.session import local_session

PAYLOAD = "time_hour STRING, carrier STRING, flight INT, dep_delay INT"
LOOK_S = 0.2
"""Between two looks at the query, in seconds: Spark's own call to wait would not let a signal in."""
Sums = dict[str, dict[str, int]]


def store(out: Path) -> Callable[[DataFrame, int], None]:
    """Return what Spark is to do with each micro-batch."""
    (out / "sums").mkdir(parents=True, exist_ok=True)

    def store_batch(rows: DataFrame, number: int) -> None:
        rows.persist()
        rows.write.mode("overwrite").parquet(str(out / "rows" / f"batch={number}"))
        delay = f.col("dep_delay")
        sums = rows.groupBy("carrier").agg(f.count("*"), f.count(delay), f.coalesce(f.sum(delay), f.lit(0))).collect()
        rows.unpersist()
        names = ("flights", "delays", "delay_min")
        replace(out / "sums" / f"{number}.json", {row[0]: dict(zip(names, row[1:], strict=True)) for row in sums})
        carriers = add_up(out / "sums")
        replace(out / "carriers.json", carriers)
        show(number, carriers)

    return store_batch


def add_up(folder: Path) -> Sums:
    """Return the sums of all batches."""
    carriers: dict[str, Counter[str]] = {}
    for path in folder.glob("*.json"):
        for carrier, figures in json.loads(path.read_bytes()).items():
            carriers.setdefault(carrier, Counter()).update(figures)
    return {carrier: dict(carriers[carrier]) for carrier in sorted(carriers)}


def show(number: int, carriers: Sums) -> None:
    """Print the figures as they are after a batch."""
    print(f"after batch {number}: {sum(figures['flights'] for figures in carriers.values())} flights")
    for carrier, figures in carriers.items():
        mean = f"{figures['delay_min'] / figures['delays']:6.1f} min" if figures["delays"] else ""
        print(f"  {carrier} {figures['flights']:6} {mean}", flush=True)


def replace(path: Path, content: Sums) -> None:
    """Write a file so that a reader sees the old one or the new one, whole."""
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(content))
    unfinished.replace(path)


def main() -> None:
    """Run the query until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stream", default="flights")
    parser.add_argument("--endpoint", help="of Kinesis; default: AWS")
    parser.add_argument("--out", type=Path, required=True, help="folder for results and Spark's checkpoint")
    options = parser.parse_args()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    source = {"stream": options.stream, "maxRowsPerBatch": "20000", "spoolDir": str(options.out / "spool")}
    if options.endpoint:
        source["endpoint"] = options.endpoint
    spark = local_session("flights")
    records = spark.readStream.format("kcl").options(**source).load()
    flight = f.from_json(f.col("data").cast("string"), PAYLOAD).alias("flight")
    rows = records.select("shardId", "sequenceNumber", flight).select("shardId", "sequenceNumber", "flight.*")
    query = (
        rows.writeStream.foreachBatch(store(options.out))
        .option("checkpointLocation", str(options.out / "checkpoint"))
        .start()
    )
    try:
        while query.isActive and not stopping.wait(LOOK_S):
            pass
        if error := query.exception():
            raise error
    finally:
        query.stop()
        spark.stop()


if __name__ == "__main__":
    main()
