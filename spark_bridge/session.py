"""A Spark session for one machine that starts fast: for examples, the demo and tests.

Not for production: it trades peak speed for a quick start. Spark runs in this machine's processes, 127.0.0.1 only.
"""

import os
import sys

from pyspark.sql import SparkSession

from spark_bridge.java import ensure_java
from spark_bridge.source import KclDataSource

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Quick compiler and simplest collector: half the start of the defaults."""


def local_session(name: str, *, cores: int = 2, memory: str = "1g", **conf: str) -> SparkSession:
    """Build a session with the ``kcl`` format registered.

    Args:
        name: the application's name.
        cores: how many tasks run at once; also the number of shuffle partitions.
        memory: most heap of the JVM.
        conf: further settings, with ``__`` for ``.``: ``spark__ui__enabled="true"``.

    Raises:
        JavaNotFoundError: see ``ensure_java``.
    """
    ensure_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        "spark.sql.adaptive.enabled": "false",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in (settings | {key.replace("__", "."): value for key, value in conf.items()}).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.dataSource.register(KclDataSource)
    return session
