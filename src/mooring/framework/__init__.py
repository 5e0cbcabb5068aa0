"""The contract between the scheduler and its plugins: what authors of plugins import."""
