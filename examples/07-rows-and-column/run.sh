# Where the pods go without the plugin, and with it.
mooring simulate -f cluster.yaml --output csv
echo
mooring simulate -f cluster.yaml --config scheduler.yaml --output csv
