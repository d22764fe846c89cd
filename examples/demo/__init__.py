"""``make demo``: a year of real flights through two workers and into Spark, with a crash, a split and a reckoning."""
