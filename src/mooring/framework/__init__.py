"""The contract between the scheduler and its plugins, and the runtime that keeps it."""
