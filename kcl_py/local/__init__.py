"""A local AWS: Kinesis as AWS documents it, in memory and over HTTP, with DynamoDB beside it."""
