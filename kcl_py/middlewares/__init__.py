"""Middlewares that many need, each in its module; none looks into a payload."""
