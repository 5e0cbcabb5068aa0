mooring explain web -f cluster.yaml --config scheduler.yaml
