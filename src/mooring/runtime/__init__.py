"""The runtime: plugins built from a configuration, and called point by point."""
