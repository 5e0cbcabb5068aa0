"""The two cycles of the Scheduling Framework, and everything that happens when they fail."""
