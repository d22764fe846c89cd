"""A bad day on purpose: what can go wrong between a caller and AWS, by rules, in memory and over HTTP."""
