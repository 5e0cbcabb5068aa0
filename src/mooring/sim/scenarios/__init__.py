"""Scenarios: steps that change a cluster, and expectations about the result."""
