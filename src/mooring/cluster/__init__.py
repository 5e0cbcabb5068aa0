"""The state of the cluster: nodes, pods, assumed pods, and the columns that hot paths read."""
