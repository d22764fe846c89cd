"""What every command that takes a FILE does first."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kcl_py import log
from kcl_py.acceptance import load_processor
from kcl_py.config import Config
from kcl_py.events import Events
from kcl_py.processor import Executor, RecordProcessor


def load_config(file: Path) -> Config:
    """Read FILE and log as it says; raises ``ConfigError``."""
    log.configure("info", "auto")
    with _logged_warnings():
        config = Config.load(file)
        log.configure(config.log.level, config.log.format)
    return config


def load_class(path: str, file: Path, *, executor: Executor | None) -> type[RecordProcessor]:
    """Import the processor; raises ``ProcessorError``."""
    return load_processor(path, folders=folders_of(file), executor=executor)


def folders_of(file: Path) -> tuple[Path, Path]:
    """Return where a processor is sought: in FILE's folder, then here."""
    return file.resolve().parent, Path.cwd()


@contextmanager
def _logged_warnings() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for warning in caught:
                Events().warning("kcl_py.config.warning", reason=str(warning.message))
