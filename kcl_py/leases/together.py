"""Make several requests at the same time, all or none."""

from collections.abc import Awaitable, Callable, Iterable

import anyio

from kcl_py.errors import KclError


async def together(work: Iterable[Callable[[], Awaitable[object]]], most: int) -> None:
    """Carry out all of ``work``, ``most`` at the same time.

    Raises whatever error of ours comes first; the rest is given up then.
    """
    failed: list[KclError] = []
    left = iter(work)

    async def carry_out() -> None:
        try:
            for one in left:
                await one()
        except KclError as error:
            failed.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for _ in range(most):
            tasks.start_soon(carry_out)
    if failed:
        raise failed[0]
