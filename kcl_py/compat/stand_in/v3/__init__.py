"""Stands for ``amazon_kclpy.v3``."""
