mooring simulate cluster.yaml --timeline --feature-gates \
  GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true
