"""The checker alone, on a history in a file."""

import sys
from pathlib import Path

from tests.sim.checker import broken

faults = broken(Path(sys.argv[1]).read_text().splitlines())
sys.stdout.write("\n".join(faults or ["all laws hold"]) + "\n")
sys.exit(bool(faults))
