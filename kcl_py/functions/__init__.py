"""Processors that are functions."""
