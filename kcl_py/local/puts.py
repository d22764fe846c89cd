"""Records put into a stream."""

from kcl_py.local import requests as ask
from kcl_py.local.account import Account
from kcl_py.local.archive import Archive, Entry
from kcl_py.local.encryption import check_key
from kcl_py.local.errors import ModelError, invalid, not_kept
from kcl_py.local.hashing import explicit_hash_key, hash_key
from kcl_py.local.operations import Answer, Operations
from kcl_py.local.quota import Quotas
from kcl_py.local.sequence import parse
from kcl_py.local.stream import Stream

REQUEST_BYTES = 10 * 1024 * 1024
"""Payloads and keys of one PutRecords. Source: Kinesis API reference, PutRecords."""


class Puts:
    """The operations that put records into streams of ``account``; ``quotas`` and ``archive`` where there are any."""

    def __init__(self, account: Account, quotas: Quotas | None, archive: Archive | None) -> None:
        self._account, self._quotas, self._archive = account, quotas, archive

    def operations(self) -> Operations:
        return {ask.PutRecord: self.put_record, ask.PutRecords: self.put_records}

    def put_record(self, request: ask.PutRecord) -> Answer:
        stream = self._account.usable(request)
        size_bytes = _size(stream, request)
        check_key(stream)
        if request.sequence_number_for_ordering is not None and parse(request.sequence_number_for_ordering) is None:
            raise invalid(f"SequenceNumberForOrdering used in PutRecord on stream {stream.name} is invalid.")
        entries: list[Entry] = []
        answer = self._put(stream, request, size_bytes, entries)
        self._keep(stream, entries)
        return answer | _encryption(stream)

    def put_records(self, request: ask.PutRecords) -> Answer:
        stream = self._account.usable(request)
        sizes = [_size(stream, entry) for entry in request.records]
        if sum(sizes) > REQUEST_BYTES:
            raise invalid(f"Records size exceeds {REQUEST_BYTES} bytes: found {sum(sizes)}")
        check_key(stream)
        for entry in request.records:
            if entry.explicit_hash_key is not None:
                explicit_hash_key(entry.explicit_hash_key)
        failed, results = 0, []
        entries: list[Entry] = []
        for entry, size_bytes in zip(request.records, sizes, strict=True):
            try:
                results.append(self._put(stream, entry, size_bytes, entries))
            except ModelError as error:
                failed += 1
                results.append({"ErrorCode": error.code, "ErrorMessage": error.message})
        self._keep(stream, entries)
        return {"FailedRecordCount": failed, "Records": results} | _encryption(stream)

    def _put(
        self, stream: Stream, entry: ask.RecordEntry | ask.PutRecord, size_bytes: int, entries: list[Entry]
    ) -> Answer:
        """Store one record; what the archive must know of it is added to ``entries``."""
        explicit, now_s = entry.explicit_hash_key, self._account.now_s()
        shard = stream.route(hash_key(entry.partition_key) if explicit is None else explicit_hash_key(explicit))
        if self._quotas is not None:
            self._quotas.write(shard, size_bytes, now_s)
        record = shard.append(entry.data, entry.partition_key, stream.key_id and "KMS", size_bytes, now_s)
        if self._archive is not None:
            entries.append((shard.index, shard.end - 1, record))
        return {"ShardId": shard.shard_id, "SequenceNumber": record.sequence_number}

    def _keep(self, stream: Stream, entries: list[Entry]) -> None:
        if self._archive is not None and entries:
            try:
                self._archive.append(stream, entries)
            except OSError as error:
                for index, position, _ in reversed(entries):
                    stream.take_back(index, position)
                raise not_kept(error) from error


def _size(stream: Stream, entry: ask.RecordEntry | ask.PutRecord) -> int:
    """Return the bytes of payload and key. Raises InvalidArgumentException above the limit of one record."""
    size_bytes = len(entry.data) + len(entry.partition_key.encode())
    if size_bytes > stream.record_bytes:
        raise invalid(f"Payload and partition key must not be above {stream.record_bytes} bytes: found {size_bytes}.")
    return size_bytes


def _encryption(stream: Stream) -> Answer:
    return {} if stream.key_id is None else {"EncryptionType": stream.encryption}
