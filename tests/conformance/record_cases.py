"""Records: numbers, places to begin, sizes."""

from tests.conformance.case import Asked, Cases, case
from tests.conformance.service import OverHttp, Service, Stream, is_refused, numbers, refusal

MIB = 1024 * 1024
RING = 1 << 128

RECORD_CASES: Cases = []


@case(RECORD_CASES, "sequence numbers", "grow, differ between shards")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    given = [[int(stream.put(ExplicitHashKey=key)) for _ in range(5)] for key in ("0", str(RING - 1000))]
    grow = "grow" if all(row == sorted(set(row)) for row in given) else "do not grow"
    return f"{grow}, {'repeat' if set(given[0]) & set(given[1]) else 'differ'} between shards"


@case(RECORD_CASES, "sequence number", "56 digits")
def _(service: Service) -> str:
    return f"{'56' if len(Stream(service).put().lstrip('0')) == 56 else 'fewer'} digits"


@case(RECORD_CASES, "sequence number in a child", "above those of its parent")
def _(service: Service) -> str:
    stream = Stream(service)
    before = int(stream.put())
    stream.split()
    return "above those of its parent" if int(stream.put()) > before else "below those of its parent"


@case(RECORD_CASES, "shards of the keys a, b, c, d among 4", "0 2 1 2")
def _(service: Service) -> str:
    stream = Stream(service, 4)
    records = [{"Data": b"x", "PartitionKey": key} for key in "abcd"]
    return numbers(stream.call("PutRecords", Records=records)["Records"])


@case(RECORD_CASES, "ExplicitHashKey of 2^128", "InvalidArgumentException")
def _(service: Service) -> str:
    stream = Stream(service)
    return refusal(lambda: stream.put(ExplicitHashKey=str(RING)))


@case(RECORD_CASES, "sequence number of another shard", "InvalidArgumentException")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    number = stream.put(ExplicitHashKey=str(RING - 1000))
    return refusal(lambda: stream.iterator("AT_SEQUENCE_NUMBER", StartingSequenceNumber=number))


@case(RECORD_CASES, "AT_ and AFTER_SEQUENCE_NUMBER", "b c, c")
def _(service: Service) -> str:
    stream = Stream(service)
    second = [stream.put(data) for data in (b"a", b"b", b"c")][1]
    at = stream.data("AT_SEQUENCE_NUMBER", StartingSequenceNumber=second)
    return f"{at}, {stream.data('AFTER_SEQUENCE_NUMBER', StartingSequenceNumber=second)}"


@case(RECORD_CASES, "LATEST, then a record", "new")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put(b"old")
    iterator = stream.iterator("LATEST")
    stream.put(b"new")
    return b" ".join(record["Data"] for record in stream.get(iterator)["Records"]).decode()


@case(RECORD_CASES, "AT_TIMESTAMP between two records", "b")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put(b"a")
    service.wait(0.2)
    between_s = service.now_s()
    service.wait(0.2)
    stream.put(b"b")
    return stream.data("AT_TIMESTAMP", Timestamp=between_s)


@case(RECORD_CASES, "AT_TIMESTAMP after the last record", "nothing")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put()
    service.wait(0.2)
    return stream.data("AT_TIMESTAMP", Timestamp=service.now_s() - 0.05) or "nothing"


@case(RECORD_CASES, "AT_TIMESTAMP in the future", "InvalidArgumentException")
def _(service: Service) -> str:
    stream = Stream(service)
    return refusal(lambda: stream.iterator("AT_TIMESTAMP", Timestamp=service.now_s() + 3600))


@case(RECORD_CASES, "made-up iterator", "InvalidArgumentException")
def _(service: Service) -> str:
    return refusal(lambda: service.call("GetRecords", ShardIterator="AAAA"))


@case(RECORD_CASES, "GetRecords with Limit 20,000", "refused")
def _(service: Service) -> str:
    stream = Stream(service)
    return is_refused(lambda: stream.get(stream.iterator(), Limit=20_000))


@case(RECORD_CASES, "MillisBehindLatest, one of two read, both read", "age of the one read, 0")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put()
    stream.put()
    service.wait(1.5)
    first = stream.get(stream.iterator(), Limit=1)
    last = stream.get(first["NextShardIterator"])
    age = "age of the one read" if first["MillisBehindLatest"] >= 1400 else "too low"
    return f"{age}, {last['MillisBehindLatest']}"


@case(RECORD_CASES, "GetRecords of 12 records of 1 MiB", "at most 10 MiB")
def _(service: Service) -> str:
    stream = Stream(service)
    for _ in range(12):
        stream.put(b"x" * (MIB - 1))
    size = sum(len(record["Data"]) + 1 for record in stream.get(stream.iterator())["Records"])
    return "at most 10 MiB" if size <= 10 * MIB else f"{size / MIB:.0f} MiB"


@case(RECORD_CASES, "record of 1 MiB and 1 byte", "refused")
def _(service: Service) -> str:
    stream = Stream(service)
    return is_refused(lambda: stream.put(b"x" * MIB))


@case(RECORD_CASES, "PutRecords of 501", "refused")
def _(service: Service) -> str:
    stream = Stream(service)
    return is_refused(lambda: stream.call("PutRecords", Records=[{"Data": b"x", "PartitionKey": "k"}] * 501))


@case(RECORD_CASES, "PutRecords of 11 MiB", "refused")
def _(service: Service) -> str:
    stream = Stream(service)
    records = [{"Data": b"x" * (MIB - 1), "PartitionKey": "k"}] * 11
    return is_refused(lambda: stream.call("PutRecords", Records=records))


@case(RECORD_CASES, "record of 2 MiB where 10 are allowed", "taken")
def _(service: Service) -> str:
    stream = Stream(service, MaxRecordSizeInKiB=10_240)
    return refusal(lambda: stream.put(b"x" * (2 * MIB)))


@case(RECORD_CASES, "record in CBOR", "bytes, milliseconds", asked=Asked.ON_THE_WIRE)
def _(service: Service) -> str:
    assert isinstance(service, OverHttp)
    stream = Stream(service)
    stream.put(b"x")
    [record] = service.call_in_cbor("GetRecords", ShardIterator=stream.iterator())["Records"]
    data = "bytes" if record["Data"] == b"x" else "text"
    is_whole = isinstance(record["ApproximateArrivalTimestamp"], int)
    return f"{data}, {'milliseconds' if is_whole else 'seconds'}"
