"""A driver to be killed: copies the stream ``s`` into Parquet until enough rows are there, telling how many it copied.

``python -m tests.spark_bridge.driver URL FOLDER TOTAL``
"""

import sys

from spark_bridge.session import local_session


def main(url: str, folder: str, total: int) -> None:
    session = local_session("driver")
    options = {"stream": "s", "endpoint": url, "region": "us-east-1", "maxRowsPerBatch": "200"}
    query = (
        session.readStream.format("kcl")
        .options(**options)
        .load()
        .writeStream.format("parquet")
        .options(path=f"{folder}/rows", checkpointLocation=f"{folder}/checkpoint")
        .start()
    )
    copied = 0
    while not query.awaitTermination(1):
        before, copied = copied, sum(progress.numInputRows for progress in query.recentProgress)
        sys.stdout.write(f"{copied}\n")
        sys.stdout.flush()
        if 0 < before == copied and session.read.parquet(f"{folder}/rows").count() >= total:
            query.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
