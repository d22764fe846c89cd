"""Bugs of what is read, handed over in batches and stored."""

from tests.sim.mutants.mutant import Mutant

MUTANTS = (
    # checkpoints
    Mutant(
        "checkpoint the last record handed over instead of the finished prefix",
        "kcl_py/tree/intake.py",
        "        return Progress(\n            ledger.prefix,\n",
        "        return Progress(\n            ledger.delivered,\n",
    ),
    Mutant(
        "release what was handed over as if it were finished",
        "kcl_py/tree/pipeline.py",
        "Drained(self._ledger.prefix, self._ledger.reach(self._earlier).end, self._unfinished))\n",
        "Drained(self._ledger.delivered, self._ledger.delivered, 0))\n",
    ),
    Mutant(
        "compare sequence numbers as text",
        "kcl_py/leases/rules.py",
        "    if position is None or row.has_ended or (row.position is not None and position <= row.position):\n",
        "    if position is None or row.has_ended or (row.position is not None and "
        "str(position) <= str(row.position)):\n",
    ),
    Mutant(
        "a take that resets the checkpoint",
        "kcl_py/leases/rules.py",
        "        set={COUNTER: row.counter + 1, OWNER: owner}\n        | (",
        "        set={COUNTER: row.counter + 1, OWNER: owner, CHECKPOINT: TRIM_HORIZON}\n        | (",
    ),
    Mutant(
        "answer a checkpoint before it is stored",
        "kcl_py/tree/checkpoints.py",
        "            self._asked.append(checkpoint)\n",
        "            checkpoint.answer.resolve(CheckpointOutcome.STORED)\n",
    ),
    Mutant(
        "skip a batch that fails",
        "kcl_py/tree/dispatcher.py",
        "        left = self._form.finish(item, failed)\n",
        "        left = self._form.finish(item, {})\n",
    ),
    Mutant(
        "store nothing with a heartbeat",
        "kcl_py/tree/checkpoints.py",
        "        self._offered = self.progress\n        return self.progress.prefix\n",
        "        return None\n",
    ),
    Mutant(
        "store nothing with the last write",
        "kcl_py/tree/checkpoints.py",
        '        return prefix if self._options.mode == "auto" else None\n',
        "        return None\n",
    ),
    Mutant(
        "answer a checkpoint when an earlier one is stored",
        "kcl_py/tree/checkpoints.py",
        "            if each.position <= position:\n",
        "            if each.position:\n",
    ),
    Mutant(
        "take a batch for finished when a part of it is",
        "kcl_py/delivery/ledger.py",
        "            to = bisect_right(entry.records, position, key=_position)\n",
        "            to = len(entry.records) if entry.records[0].position <= position else 0\n",
    ),
    Mutant(
        "hand over again what the processor had stored",
        "kcl_py/tree/forms.py",
        "        left = entry.left() if trouble is not None or entry.next else range(len(entry.records))\n",
        "        left = range(len(entry.records))\n",
    ),
    # reading
    Mutant(
        "go on at the newest record instead of the checkpoint",
        "kcl_py/leases/start.py",
        "        return Position(PositionKind.AFTER, prefix.value)\n",
        "        return Position(PositionKind.LATEST)\n",
    ),
    Mutant(
        "begin a child at its newest record",
        "kcl_py/leases/start.py",
        "    return TRIM_HORIZON\n",
        "    return Position(PositionKind.LATEST) if row.parents else TRIM_HORIZON\n",
    ),
    Mutant(
        "open an expired iterator at the newest record",
        "kcl_py/tree/producer.py",
        "                self._iterator = None\n                self._log.info",
        "                self._iterator, self._position = None, "
        "Position(PositionKind.LATEST)\n                self._log.info",
    ),
    Mutant(
        "drop the records that come with a shard's end",
        "kcl_py/tree/producer.py",
        "        if fetched.records:\n            last",
        "        if fetched.records and fetched.next_iterator is not None:\n            last",
    ),
    Mutant(
        "keep the memory of a read that failed",
        "kcl_py/tree/producer.py",
        "            return _Read(fetched)\n        finally:\n            self._account.settle(size_bytes)\n",
        "            self._account.settle(size_bytes)\n            return _Read(fetched)\n      "
        "  finally:\n            pass\n",
    ),
    Mutant(
        "give no room back",
        "kcl_py/tree/intake.py",
        "        self._room_bytes += size_bytes\n        self._tell(Room(records, size_bytes))\n",
        "        self._room_bytes += size_bytes\n",
    ),
    Mutant(
        "read whatever memory is left",
        "kcl_py/delivery/budget.py",
        "            return hungry if self._used_bytes < self._total_bytes else None\n",
        "            return hungry\n",
    ),
    Mutant(
        "read ahead without a limit",
        "kcl_py/tree/producer.py",
        "            self._room_records > 0 and self._room_bytes > 0 and not",
        "            self._room_bytes > 0 and not",
    ),
    Mutant(
        "go on with the old iterator",
        "kcl_py/tree/producer.py",
        "        self._position = self._iterator = None\n",
        "        self._position = None\n",
    ),
    # delivery
    Mutant(
        "hand over while a batch is in hand",
        "kcl_py/tree/dispatcher.py",
        "        return not self._is_stopped and not (self._form.is_serial and self._lanes)\n",
        "        return not self._is_stopped\n",
    ),
    Mutant(
        "say goodbye while a hook runs",
        "kcl_py/tree/pipeline.py",
        "            if not self._caller.is_running and not self._is_dispatching:\n    "
        "            self._say_goodbye()\n",
        "            self._say_goodbye()\n",
        form="batch",
    ),
    Mutant(
        "go on behind unfinished records after a handoff that was called off",
        "kcl_py/tree/pipeline.py",
        "        self._begin_after(position)\n        self._tell_progress()\n",
        "        self._begin_after(self._ledger.delivered)\n        self._tell_progress()\n",
    ),
    Mutant(
        "never mark what comes again",
        "kcl_py/tree/forms.py",
        "            None if trouble is None else trouble.redelivery(),\n",
        "            None,\n",
    ),
    Mutant(
        "stop whenever processors are done",
        "kcl_py/tree/agenda.py",
        "        return Drain(why, until_at if self.stop is None else min(until_at, self.stop.until_at))\n",
        "        return Drain(why, until_at)\n",
    ),
    # pauses
    Mutant("begin what is paused", "kcl_py/tree/pipeline.py", "Brake(start.paused_at_ms)", "Brake()"),
    Mutant("rest with a batch in hand", "kcl_py/tree/steering.py", " or not is_idle or", " or"),
)
