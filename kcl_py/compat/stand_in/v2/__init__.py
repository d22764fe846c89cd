"""Stands for ``amazon_kclpy.v2``."""
