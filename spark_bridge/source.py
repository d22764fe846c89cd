"""The data source that Spark knows as ``kcl``.

``spark.dataSource.register(KclDataSource)``, then ``spark.readStream.format("kcl")``. Options are checked here, at
``load()``: an error later would come out of Spark without its cause.
"""

from collections.abc import Mapping

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from spark_bridge.options import Options
from spark_bridge.reader import KclReader
from spark_bridge.rows import COLUMNS


class KclDataSource(DataSource):
    """A Kinesis stream as rows of ``rows.COLUMNS``.

    Raises:
        kcl_py.ConfigError: an option is unknown, missing or wrong.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._options = Options.parse(options)

    @classmethod
    def name(cls) -> str:
        return "kcl"

    def schema(self) -> str:
        return COLUMNS

    def streamReader(self, schema: StructType) -> KclReader:
        return KclReader(self._options)
