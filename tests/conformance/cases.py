"""All cases, in the order of the table. What AWS does is what its documentation says."""

from tests.conformance.consumer_cases import CONSUMER_CASES
from tests.conformance.quota_cases import QUOTA_CASES
from tests.conformance.record_cases import RECORD_CASES
from tests.conformance.shard_cases import SHARD_CASES
from tests.conformance.stream_cases import STREAM_CASES

CASES = (*SHARD_CASES, *RECORD_CASES, *STREAM_CASES, *CONSUMER_CASES, *QUOTA_CASES)
