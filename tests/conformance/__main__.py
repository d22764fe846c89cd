"""``make conformance``: play all cases against all implementations, print the table, fail on a surprise."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from tests.conformance.case import Asked, Case
from tests.conformance.cases import CASES
from tests.conformance.ours import ours
from tests.conformance.peers import kcl_local, kinesis_local, ministack
from tests.conformance.service import InMemory, OverHttp, Service
from tests.conformance.table import is_asked, lines, surprises

SERVERS: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "kcl local": kcl_local,
    "kinesis-local": kinesis_local,
    "ministack": ministack,
}


def main() -> int:
    """Print the table; return 1 if an implementation is not what it is known to be."""
    found = {"in memory": _play("in memory", lambda case: InMemory(with_rates=case.with_rates))}
    with ours() as prompt, ours(with_rates=True) as paced:
        for name, serve in SERVERS.items():
            with serve() as url:
                process = OverHttp(url)
                services = (process, prompt, paced) if name == "kcl local" else (process, process, process)
                found[name] = _play(name, partial(_of, services))
    sys.stdout.write("\n".join(lines(found)) + "\n")
    told = [line for name, by_case in found.items() for line in surprises(name, by_case)]
    sys.stdout.write(("\n".join(told) or "no surprise") + "\n")
    return 1 if told else 0


def _of(services: tuple[Service, Service, Service], case: Case) -> Service:
    """Return who is asked: the process, unless the case needs a clock that can be moved, or limited rates."""
    process, prompt, paced = services
    if case.with_rates:
        return paced
    return prompt if case.asked is Asked.OURS else process


def _play(name: str, service: Callable[[Case], Service]) -> dict[str, str]:
    return {case.name: case.find(service(case)) for case in CASES if is_asked(case, name)}


if __name__ == "__main__":
    sys.exit(main())
