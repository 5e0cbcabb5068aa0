"""A Kubernetes scheduler that you program in Python."""

__version__ = "0.1.0"
