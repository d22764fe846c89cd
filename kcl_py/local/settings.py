"""What can be set on a stream that is there: retention, mode, encryption, the size of a record."""

from kcl_py.local import requests as ask
from kcl_py.local.account import ON_DEMAND_QUOTA, Account
from kcl_py.local.errors import invalid, limit_exceeded
from kcl_py.local.operations import Answer, Operations
from kcl_py.local.stream import ACCOUNT, HOUR_S, Change, Mode, Stream

MIN_RETENTION_H, MAX_RETENTION_H = 24, 8760
"""Source: Kinesis API reference, IncreaseStreamRetentionPeriod."""


class Settings:
    """The operations on settings of streams of ``account``."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def operations(self) -> Operations:
        return {
            ask.DecreaseStreamRetentionPeriod: self.decrease_retention,
            ask.IncreaseStreamRetentionPeriod: self.increase_retention,
            ask.StartStreamEncryption: self.start_encryption,
            ask.StopStreamEncryption: self.stop_encryption,
            ask.UpdateMaxRecordSize: self.update_max_record_size,
            ask.UpdateStreamMode: self.update_stream_mode,
        }

    def increase_retention(self, request: ask.IncreaseStreamRetentionPeriod) -> Answer:
        return self._set_retention(request, request.retention_period_hours, sign=1)

    def decrease_retention(self, request: ask.DecreaseStreamRetentionPeriod) -> Answer:
        return self._set_retention(request, request.retention_period_hours, sign=-1)

    def update_stream_mode(self, request: ask.UpdateStreamMode) -> Answer:
        stream, mode = self._changing(request), Mode(request.stream_mode_details.stream_mode)
        is_new = mode is Mode.ON_DEMAND and stream.mode is not mode
        if is_new and self._account.on_demand_count() >= ON_DEMAND_QUOTA:
            raise limit_exceeded(f"Account {ACCOUNT} may have {ON_DEMAND_QUOTA} streams in ON_DEMAND mode.")
        stream.mode = mode
        return self._begin(stream)

    def update_max_record_size(self, request: ask.UpdateMaxRecordSize) -> Answer:
        stream = self._changing(request)
        stream.record_bytes = request.max_record_size * 1024
        return self._begin(stream)

    def start_encryption(self, request: ask.StartStreamEncryption) -> Answer:
        return self._set_key(request, request.encryption_type, request.key_id)

    def stop_encryption(self, request: ask.StopStreamEncryption) -> Answer:
        return self._set_key(request, request.encryption_type, None)

    def _set_key(self, request: ask.StreamRequest, encryption_type: str, key_id: str | None) -> Answer:
        stream = self._changing(request)
        if encryption_type != "KMS":
            raise invalid(f"EncryptionType must be KMS. Request specified {encryption_type}.")
        stream.key_id = key_id
        return self._begin(stream)

    def _set_retention(self, request: ask.StreamRequest, hours: int, *, sign: int) -> Answer:
        stream = self._changing(request)
        before = stream.retention_s // HOUR_S
        if not MIN_RETENTION_H <= hours <= MAX_RETENTION_H:
            raise invalid(
                f"Retention period must be {MIN_RETENTION_H} to {MAX_RETENTION_H} hours. Requested: {hours} hours."
            )
        if (hours - before) * sign < 0:
            raise invalid(
                f"Requested retention period ({hours} hours) for stream {stream.name} is on the other side of the "
                f"existing one ({before} hours): increase to a longer one, decrease to a shorter."
            )
        stream.retention_s = hours * HOUR_S
        return {}

    def _changing(self, request: ask.StreamRequest) -> Stream:
        stream = self._account.stream(request)
        stream.check_active()
        return stream

    def _begin(self, stream: Stream) -> Answer:
        """The setting holds from now on; the stream is UPDATING for as long as a change takes."""
        stream.begin(Change(self._account.due_s()))
        return {}
