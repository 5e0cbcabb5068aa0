mooring simulate -f cluster.yaml --config scheduler.yaml --timeline
