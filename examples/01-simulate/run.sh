mooring simulate -f cluster.yaml
