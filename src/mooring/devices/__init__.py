"""Which devices claims select, and which they get (Dynamic Resource Allocation)."""
