"""Bugs of who owns a shard, and of what becomes of its row."""

from tests.sim.mutants.mutant import Mutant

MUTANTS = (
    # possession
    Mutant(
        "renew without a condition",
        "kcl_py/leases/rules.py",
        "    tests = (Is(COUNTER, row.counter), named, Is(TOKEN, token))\n",
        "    tests = ()\n",
    ),
    Mutant(
        "take without a condition",
        "kcl_py/leases/rules.py",
        '        operation="take",\n        key=row.key,\n        tests=as_seen(row),\n',
        '        operation="take",\n        key=row.key,\n        tests=(),\n',
    ),
    Mutant(
        "ignore the local deadline",
        "kcl_py/leases/fence.py",
        "        return self.tenure is None or now >= self.tenure.deadline_at\n",
        "        return self.tenure is None\n",
    ),
    Mutant(
        "a deadline later than the others' patience",
        "kcl_py/leases/tenure.py",
        "    return sent_at + failover_s - margin_s\n",
        "    return sent_at + 3 * failover_s - margin_s\n",
    ),
    Mutant(
        "take over too early",
        "kcl_py/leases/sightings.py",
        "        return begun_at > first.ended_at + self._failover_s\n",
        "        return begun_at > first.ended_at + self._failover_s / 4\n",
    ),
    Mutant(
        "believe that a take has succeeded",
        "kcl_py/leases/settling.py",
        '            return "succeeded" if named and mine else "lost"\n',
        '            return "succeeded"\n',
    ),
    Mutant(
        "believe that a renewal has succeeded",
        "kcl_py/leases/settling.py",
        '    return "again" if named and mine else "lost"\n',
        '    return "succeeded"\n',
    ),
    Mutant(
        "go on after the lease is lost",
        "kcl_py/tree/lease.py",
        "            self._pipeline.tell(Abandon())\n",
        "            pass\n",
    ),
    Mutant(
        "an epoch that does not grow",
        "kcl_py/leases/possession.py",
        "        epoch = int(taken.write.set[COUNTER])\n",
        "        epoch = 1\n",
    ),
    Mutant(
        "never open a shard again whose machinery died",
        "kcl_py/tree/coordinator.py",
        "        holding = self._held.pop(down.name, None)\n",
        "        held = self._held\n"
        "        holding = held.pop(down.name, None) if down.error is None else held.get(down.name)\n",
    ),
    Mutant(
        "release under any token",
        "kcl_py/leases/rules.py",
        "    tests = (Is(COUNTER, row.counter), Is(OWNER, owner), Is(HOLDER, None), Is(TOKEN, token))\n",
        "    tests = ()\n",
    ),
    Mutant(
        "let what runs go on after the lease is lost",
        "kcl_py/tree/dispatcher.py",
        "        for hand, task in running:\n            task.cancel()\n",
        "        for hand, _ in running:\n",
    ),
    # shares
    Mutant(
        "move a shard for a difference of one",
        "kcl_py/leases/assignment.py",
        "_GAP = 2\n",
        "_GAP = 1\n",
    ),
    Mutant(
        "leave shards with whom they are",
        "kcl_py/leases/assignment.py",
        "    if fleet.may_pull:\n",
        "    if not fleet.may_pull:\n",
    ),
    Mutant(
        "count the dead among the living",
        "kcl_py/leases/view.py",
        "            if not self._beats.has_expired(row.worker, row.beat, begun_at=begun_at, ended_at=ended_at)\n"
        "            or row.worker == self._me\n",
        "            if row.worker\n",
    ),
    # handoff
    Mutant(
        "hand a shard over before it is drained",
        "kcl_py/tree/agenda.py",
        "        if last is not None or self.fault is not None:\n",
        "        if last is not None or self.fault is not None or row.in_handoff:\n",
    ),
    Mutant(
        "release a shard before it is drained",
        "kcl_py/tree/agenda.py",
        "        last = self._last_said(now)\n",
        "        last = self._last_said(now) or (Drained(None, None, 0) if self.stop is not None else None)\n",
    ),
    Mutant(
        "take a shard before its holder has let go",
        "kcl_py/leases/receiving.py",
        "        if not row.in_handoff:\n            return Step.TAKE\n",
        "        return Step.TAKE\n",
    ),
    # requests
    Mutant(
        "leave a request in the row that it is answered in",
        "kcl_py/leases/rules.py",
        '            REQUEST,\n            native("delivered"),\n',
        '            native("delivered"),\n',
    ),
    Mutant(
        "answer a request before the shard is drained",
        "kcl_py/tree/agenda.py",
        "        last = self._last_said(now)\n",
        "        last = self._last_said(now) or (Drained(None, None, 0) if self.asked(row) is not None else None)\n",
    ),
    Mutant(
        "go on where the shard was, wherever it was moved to",
        "kcl_py/tree/pipeline.py",
        "        self._begin_after(start.row.position)\n",
        "        self._begin_after(self._ledger.prefix or start.row.position)\n",
    ),
    Mutant(
        "store after a move what was finished before it",
        "kcl_py/tree/agenda.py",
        "        self.checkpoints.refuse()\n        self.checkpoints.begin(row.position)\n",
        "        self.checkpoints.refuse()\n",
    ),
    Mutant(
        "go on under the same epoch after a move",
        "kcl_py/leases/possession.py",
        "token=moved.write.token, epoch=epoch))\n",
        "token=moved.write.token))\n",
    ),
    # resharding
    Mutant(
        "children before parents",
        "kcl_py/leases/lineage.py",
        "        for parent in row.parents\n        if (parent in rows and not rows[parent].has_ended) or",
        "        for parent in row.parents[:0]\n        if (parent in rows and not rows[parent].has_ended) or",
    ),
    Mutant(
        "wait for the first of two parents only",
        "kcl_py/leases/lineage.py",
        "        for parent in row.parents\n        if (parent in rows and not rows[parent].has_ended) or",
        "        for parent in row.parents[:1]\n        if (parent in rows and not rows[parent].has_ended) or",
    ),
    Mutant(
        "complete before the last records are handed over",
        "kcl_py/tree/pipeline.py",
        "        while self._intake and dispatcher.wants_more:\n",
        "        while self._intake and dispatcher.wants_more and self._children is None:\n",
    ),
    Mutant(
        "complete before the children have rows",
        "kcl_py/tree/lease.py",
        "        self._pen.request(partial(make_children, self._worker, self._row, self._possession.token, known))\n",
        "        self._agenda.children = tuple(child.shard_id for child in known)\n        self._go_on()\n",
    ),
    Mutant(
        "make no row for a shard that is closed",
        "kcl_py/leases/lineage.py",
        "        is_wanted = is_lost or self._has_old or not shard.closed or _State.DONE in "
        "states or self._inherits(shard)\n",
        "        is_wanted = not shard.closed\n",
    ),
    Mutant(
        "delete a row when its children have rows",
        "kcl_py/leases/completed.py",
        "    return all(child in rows and rows[child].has_progress for child in children)\n",
        "    return all(child in rows for child in children)\n",
    ),
    Mutant(
        "delete a row when one of its children has progress",
        "kcl_py/leases/completed.py",
        "    return all(child in rows and rows[child].has_progress for child in children)\n",
        "    return any(child in rows and rows[child].has_progress for child in children)\n",
    ),
    Mutant(
        "delete a row before those of its parents",
        "kcl_py/leases/completed.py",
        "not row.children or any(parent in left for parent in row.parents):\n",
        "not row.children:\n",
    ),
    Mutant(
        "delete a row with the next listing",
        "kcl_py/tree/audit.py",
        "        return min(listed.begun_at, now - _SETTLING_FAILOVERS * self._leases.failover_s)\n",
        "        return now\n",
    ),
    Mutant(
        "make rows again whose shards have been read",
        "kcl_py/leases/lineage.py",
        "            trace = max(traces.get(key, _Trace.NONE), _trace(self._rows.get(key)))\n",
        "            trace = max(traces.get(key, _Trace.NONE), _trace(None))\n",
    ),
    Mutant(
        "make only the first child",
        "kcl_py/tree/lease_requests.py",
        "        for child in children:\n            await",
        "        for child in children[:1]:\n            await",
    ),
    # watching
    Mutant(
        "never look again at what a silent worker of a large table holds",
        "kcl_py/leases/view.py",
        "            if self._read_at[key] < since_at or now > expires_at:\n",
        "            if False:\n",
    ),
)
