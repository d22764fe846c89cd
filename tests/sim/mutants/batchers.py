"""Bugs of records that wait in batchers."""

from tests.sim.mutants.mutant import Mutant

BATCHING = "kcl_py/delivery/batching.py"

MUTANTS = (
    Mutant(
        "hand over batches of one key side by side",
        BATCHING,
        "        behind = self.keys.get(batch.key)\n",
        "        behind = None\n",
    ),
    Mutant(
        "forget the batch behind one that is settled",
        BATCHING,
        "            line.ready.append(behind.popleft())\n",
        "            behind.popleft()\n",
    ),
    Mutant(
        "let the next batch of a key pass one that has failed",
        BATCHING,
        "        self._lines[batch.batcher].in_hand -= 1\n        self._delays += 1\n",
        "        self.settle(batch)\n        self._delays += 1\n",
    ),
    Mutant(
        "close no batch for its age",
        BATCHING,
        "batch.opened_at + line.limits.max_age_s <= now:\n",
        "batch.opened_at + line.limits.max_age_s <= now - 1e9:\n",
    ),
    Mutant(
        "close a batch one record too late",
        BATCHING,
        "        if len(batch.items) >= line.limits.max_records:\n",
        "        if len(batch.items) > line.limits.max_records:\n",
    ),
    Mutant(
        "hand over any number of batches at once",
        BATCHING,
        "            if line.ready and line.in_hand < line.limits.concurrency:\n",
        "            if line.ready:\n",
    ),
    Mutant(
        "finish a record as it is given away",
        "kcl_py/tree/forms.py",
        "        self._given_away[item] = record, answer\n",
        "        self._given_away[item] = record, answer\n        self._attempt.ledger.finish_record(entry, index)\n",
    ),
    Mutant(
        "finish what has failed of a batch with the others",
        "kcl_py/tree/batches.py",
        "            if index not in failed:\n",
        "            if index >= 0:\n",
    ),
    Mutant(
        "forget in a batcher that another may have had a record",
        "kcl_py/tree/batches.py",
        "            told = record if trouble is None else replace(record, redelivery=trouble.redelivery(index))\n",
        "            told = replace(record, redelivery=None if trouble is None else trouble.redelivery(index))\n",
    ),
    Mutant(
        "hand over what batchers have when the shard has halted",
        "kcl_py/tree/batches.py",
        "        if flushes and not self._is_stopped:\n",
        "        if not self._is_stopped:\n",
    ),
)
