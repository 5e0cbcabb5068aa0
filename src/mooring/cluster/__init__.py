"""What is true now: nodes, pods, assumed pods, and the columns that the hot path reads."""
