"""Which class the worker makes for the user's: that itself, or one that runs its hooks off the event loop."""

from kcl_py.config import Config
from kcl_py.errors import ConfigError
from kcl_py.executors.hosted import is_synchronous
from kcl_py.executors.origin import origin_of
from kcl_py.executors.process import in_children
from kcl_py.executors.thread import in_threads
from kcl_py.processor import HOOKS, RecordProcessor, preferred_executor


def on_executor(processor: type[RecordProcessor], config: Config) -> type[RecordProcessor]:
    """Return the class to make instances of.

    Args:
        processor: the user's class, checked.
        config: says which executor; at most ``delivery.concurrency`` threads run at a time.

    Raises:
        ProcessorError: a child process could not import the class.
    """
    executor = config.delivery.executor or preferred_executor(processor)
    if executor == "process":
        origin_of(processor)
        return in_children(processor)
    if any(is_synchronous(processor, hook) for hook in HOOKS):
        return in_threads(processor, config.delivery.concurrency)
    return processor


def checkpoint_faults(processor: type[RecordProcessor], config: Config) -> list[str]:
    """Say what is set of when checkpoints are stored, where nothing says who does it and this class does."""
    if _own_mode(processor, config) is None:
        return []
    return [
        f"checkpoint.{name}: expected checkpoint.mode beside it, since {processor.__qualname__} stores checkpoints "
        f"itself if nothing is said, found {found:.15g}; set mode to auto, or leave {name} out"
        for name in ("interval_s", "records")
        if (found := getattr(config.checkpoint, name)) is not None
    ]


def as_it_checkpoints(processor: type[RecordProcessor], config: Config) -> Config:
    """Return the options for a class that has a checkpoint mode of its own, unless one is set.

    Raises:
        ConfigError: they have ``checkpoint_faults``.
    """
    mode = _own_mode(processor, config)
    if mode is None:
        return config
    if faults := checkpoint_faults(processor, config):
        raise ConfigError(*faults)
    return config.model_copy(update={"checkpoint": config.checkpoint.model_copy(update={"mode": mode})})


def _own_mode(processor: type[RecordProcessor], config: Config) -> str | None:
    is_set = "mode" in config.checkpoint.model_fields_set
    mode: str | None = None if is_set else getattr(processor, "preferred_checkpoint_mode", None)
    return mode
