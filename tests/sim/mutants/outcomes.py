"""Bugs of what becomes of single records: outcomes, lanes, slots, letters and marks."""

from tests.sim.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "hand over the next record of a lane before the one in hand is finished",
        "kcl_py/delivery/lanes.py",
        '            key = entry.records[index].partition_key if is_by_key else ""\n',
        '            key = f"{entry.number} {index}"\n',
    ),
    Mutant(
        "hand over records of one key in any order",
        "kcl_py/delivery/lanes.py",
        "            self._ready.append(queue.popleft())\n",
        "            self._ready.append(queue.pop())\n",
    ),
    Mutant(
        "wake what is put off at once",
        "kcl_py/delivery/lanes.py",
        "        while self._delayed and self._delayed[0][0] <= now:\n",
        "        while self._delayed:\n",
    ),
    Mutant(
        "forget which lanes wait for nothing any more",
        "kcl_py/delivery/lanes.py",
        "            self._behind[key] = kept or None\n        self._forget_empty()\n",
        "            self._behind[key] = kept or None\n",
    ),
    Mutant(
        "checkpoint the newest record that is finished",
        "kcl_py/delivery/ledger.py",
        "        if index != entry.next:\n",
        "        if index < entry.next:\n",
    ),
    Mutant(
        "give a slot back twice",
        "kcl_py/tree/dispatcher.py",
        "            self._slots.free()\n",
        "            self._slots.free()\n            self._slots.free()\n",
    ),
    Mutant(
        "never give a slot back",
        "kcl_py/tree/dispatcher.py",
        "            self._slots.free()\n",
        "            pass\n",
    ),
    Mutant(
        "go on with a shard that has halted",
        "kcl_py/tree/dispatcher.py",
        "            self.stop()  # batchers too, while they are flushed\n",
        "",
    ),
    Mutant(
        "forget records that wait for their letters",
        "kcl_py/tree/dispatcher.py",
        "                self._owed[item] = sequel.owed, sequel.due_at\n",
        "                pass\n",
    ),
    Mutant(
        "have what was put off come with a letter that had to wait",
        "kcl_py/tree/sequel.py",
        "            return replace(sequel, due_at=began_at + max(again))\n",
        "            return replace(sequel, due_at=began_at)\n",
    ),
    Mutant(
        "finish a record before its letter is stored",
        "kcl_py/tree/giving_up.py",
        '            case "dead_letter":\n                return await self._store(failure)\n',
        '            case "dead_letter":\n                return None\n',
    ),
    Mutant(
        "give up one attempt too early",
        "kcl_py/delivery/verdicts.py",
        "    if isinstance(verdict, Reject) or attempts > options.retries:\n",
        "    if isinstance(verdict, Reject) or attempts >= options.retries:\n",
    ),
    Mutant(
        "try again what was refused",
        "kcl_py/delivery/verdicts.py",
        "    if isinstance(verdict, Reject) or attempts > options.retries:\n",
        "    if attempts > options.retries:\n",
    ),
    Mutant(
        "hand over again what a mapping does not name",
        "kcl_py/tree/forms.py",
        "            if index not in failed:\n                self",
        "            if index not in failed and not entry.apart:\n                self",
    ),
    Mutant(
        "take a hook that swallowed its cancellation for done",
        "kcl_py/delivery/hook.py",
        "    if was_cut_off():\n        raise asyncio.CancelledError\n",
        "",
    ),
    Mutant(
        "mark nothing that another may have had",
        "kcl_py/tree/forms.py",
        "        return replace(record, redelivery=MAYBE) if self._earlier.may_have_had(record) else record\n",
        "        return record\n",
    ),
    Mutant(
        "believe a clean release that others came after",
        "kcl_py/delivery/earlier.py",
        "    if native.clean == row.counter:\n",
        "    if native.clean is not None:\n",
    ),
    Mutant(
        "tell the next owner only what this one was handed",
        "kcl_py/delivery/earlier.py",
        "        return Earlier(to, 0.0 if arrived_s >= self.before_s else self.before_s)\n",
        "        return Earlier(to)\n",
    ),
)
