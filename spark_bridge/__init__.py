"""A Kinesis stream in Spark Structured Streaming, read by the consumer tree of kcl_py."""

from spark_bridge.java import ensure_java
from spark_bridge.source import KclDataSource

__all__ = ["KclDataSource", "ensure_java"]
