"""Custom resources that become pods, such as a RayCluster: described as data, one file for each kind."""
