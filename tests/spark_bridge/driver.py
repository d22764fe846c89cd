"""A driver to be killed: copies the stream ``s`` into Parquet until enough rows are there, telling how many are.

``python -m tests.spark_bridge.driver URL FOLDER ROWS``
"""

import sys

from spark_bridge.session import local_session


def main(url: str, folder: str, rows: int) -> None:
    session = local_session("driver")
    options = {"stream": "s", "endpoint": url, "region": "us-east-1", "maxRowsPerBatch": "150"}
    query = (
        session.readStream.format("kcl")
        .options(**options)
        .load()
        .writeStream.format("parquet")
        .options(path=f"{folder}/rows", checkpointLocation=f"{folder}/checkpoint")
        .start()
    )
    count = 0
    while count < rows and not query.awaitTermination(1):
        if query.lastProgress:
            count = session.read.parquet(f"{folder}/rows").count()
            sys.stdout.write(f"{count}\n")
            sys.stdout.flush()
    query.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
