"""Bugs of effects that have to be applied once."""

from tests.sim.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "apply the effects of a record without its marker",
        "kcl_py/once.py",
        "            await self._tables.apply([*effects, self._marker(record)])\n",
        "            await self._tables.apply(effects)\n",
    ),
    Mutant(
        "put a marker whatever is there",
        "kcl_py/once.py",
        'UNLESS_MARKED = "attribute_not_exists(#key) OR #expires < :now"\n',
        'UNLESS_MARKED = "attribute_not_exists(#key) OR #expires < :now OR #expires >= :now"\n',
    ),
    Mutant(
        "apply effects without their checkpoint",
        "kcl_py/leases/dynamodb.py",
        '        lease = [] if write is None else [{"Update": {**self._at(write.key), **expressions.update(write)}}]\n',
        "        lease: list[Any] = []\n",
    ),
    Mutant(
        "apply effects whoever holds the lease",
        "kcl_py/leases/dynamodb.py",
        '        lease = [] if write is None else [{"Update": {**self._at(write.key), **expressions.update(write)}}]\n',
        '        lease = [] if write is None else [{"Update": {**self._at(write.key), **expressions.update(write)}}]\n'
        "        for item in lease:\n"
        '            item["Update"]["ConditionExpression"] += " OR attribute_exists(leaseKey)"\n',
    ),
)
