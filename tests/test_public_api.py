"""The names that users import."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import kcl_py
from kcl_py import errors

PUBLIC = {
    "RecordProcessor",
    "OwnedShard",
    "SequenceNumber",
    "RecordBatch",
    "Record",
    "Redelivery",
    "Checkpointer",
    "Config",
    "Stream",
    "KclError",
    "ConfigError",
    "ProcessorError",
    "AwsSetupError",
    "StreamNotFoundError",
    "CredentialsError",
    "EndpointError",
    "LeaseTableError",
    "StreamIdentityError",
    "LeaseLostError",
    "PositionError",
    "CheckpointFailedError",
}


def test_public_names_are_the_published_ones() -> None:
    """Extended, never renamed."""
    assert set(kcl_py.__all__) == PUBLIC
    assert kcl_py.__all__ == sorted(kcl_py.__all__)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_name_can_be_imported(name: str) -> None:
    """The lazy ones too."""
    assert getattr(kcl_py, name).__name__ == name


def test_unknown_name_is_an_attribute_error() -> None:
    """As for any module."""
    with pytest.raises(AttributeError, match="has no attribute 'Streem'"):
        _ = kcl_py.Streem


@pytest.mark.parametrize("name", sorted(name for name in PUBLIC if name.endswith("Error")))
def test_error_survives_pickling(name: str) -> None:
    """Errors cross process borders in Spark."""
    error = getattr(errors, name)("cannot a", "b")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.args) == (type(error), str(error), error.args)


def test_kcl_is_installed_as_a_command() -> None:
    """Beside the interpreter, by the entry point."""
    done = subprocess.run([Path(sys.executable).with_name("kcl"), "--help"], capture_output=True, text=True, check=True)
    assert {"run", "check", "status", "local"} <= set(done.stdout.split())
