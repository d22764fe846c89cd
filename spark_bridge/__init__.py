"""A Kinesis stream in Spark Structured Streaming, read by the consumer tree of kcl_py."""

from spark_bridge.java import JavaNotFoundError, ensure_java
from spark_bridge.source import KclDataSource

__all__ = ["JavaNotFoundError", "KclDataSource", "ensure_java"]
