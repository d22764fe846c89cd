"""How each implementation is known to differ from AWS: case and what it does instead.

What differs and is not here fails ``make conformance``, and so does what is here and no longer differs.
"""

DEVIATIONS: dict[str, dict[str, str]] = {
    "in memory": {},
    "kcl local": {},
    "kinesis-local": {
        "bounds of a closed shard": "start above end",
        "ShardFilter AT_TRIM_HORIZON": "0 1 2",
        "sequence number of another shard": "taken",
        "made-up iterator": "HTTP 500",
        "MillisBehindLatest, one of two read, both read": "too low, 0",
        "record of 1 MiB and 1 byte": "taken",
        "PutRecords of 501": "taken",
        "UpdateStreamMode, then a split": "ON_DEMAND, taken",
        "DescribeStreamConsumer after DeregisterStreamConsumer": "taken",
        "SubscribeToShard: first event": "SubscribeToShardEvent",
        "SubscribeToShard: split shard with 3 records": "3 records, no children",
        "SubscribeToShard again within 5 s": "taken",
    },
    "ministack": {
        "closed shard, fully read": "ResourceNotFoundException",
        "unread records of a split shard": "ResourceNotFoundException",
        "status while a shard is split": "ACTIVE",
        "split while another is under way": "taken",
        "bounds of a closed shard": "not listed",
        "UpdateShardCount from 2 to 4": "4 open, 4 listed",
        "UpdateShardCount above double": "taken",
        "ListShards: second page by the token alone": "ResourceNotFoundException",
        "ListShards: token beside the name": "taken",
        "ShardFilter AT_TRIM_HORIZON": "1 2",
        "ShardFilter FROM_TRIM_HORIZON": "1 2",
        "sequence number of another shard": "taken",
        "made-up iterator": "ExpiredIteratorException",
        "GetRecords with Limit 20,000": "taken",
        "GetRecords of 12 records of 1 MiB": "12 MiB",
        "record of 1 MiB and 1 byte": "taken",
        "record of 2 MiB where 10 are allowed": "ValidationException",
        "retention to 48 hours, then a longer one by the wrong operation": "48, ValidationException",
        "UpdateStreamMode, then a split": "InvalidAction",
        "DescribeLimits": "InvalidAction",
        "consumer, just registered": "ACTIVE",
        "DeleteStream with a consumer": "taken",
        "SubscribeToShard: split shard with 3 records": "ResourceNotFoundException",
    },
}
