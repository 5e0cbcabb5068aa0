"""Which pod is tried next, and when a pod that failed is worth another try."""
