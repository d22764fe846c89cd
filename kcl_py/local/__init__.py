"""A local AWS: Kinesis as AWS documents it, in memory and over HTTP, with DynamoDB and S3 beside it."""
