"""For tests of processors: run one on given records, on a fake stream, on a clock that only the test moves."""

from actors.testing import ManualClock
from kcl_py.local.faults.fault import Fault
from kcl_py.local.faults.fault import Kind as FaultKind
from kcl_py.local.faults.faults import Faults
from kcl_py.testing.entry import Entry, record
from kcl_py.testing.life import RunTimeoutError
from kcl_py.testing.recorder import ScriptedError
from kcl_py.testing.run import HookCall, Run
from kcl_py.testing.runner import run_processor
from kcl_py.testing.stream import FakeStream

__all__ = [
    "Entry",
    "FakeStream",
    "Fault",
    "FaultKind",
    "Faults",
    "HookCall",
    "ManualClock",
    "Run",
    "RunTimeoutError",
    "ScriptedError",
    "record",
    "run_processor",
]
