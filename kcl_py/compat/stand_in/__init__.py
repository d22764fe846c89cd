"""What processors written for amazon_kclpy import, where that package is not installed: its names, and no daemon.

Each module stands for the one of the same place in ``amazon_kclpy``.
"""
