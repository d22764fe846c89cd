"""A local AWS: Kinesis as AWS documents it, in memory and over HTTP, with DynamoDB, S3 and SQS beside it."""
