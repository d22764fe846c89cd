"""A DynamoDB in memory: what kcl_py uses of it, with AWS's rules and AWS's refusals."""
