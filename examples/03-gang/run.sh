# Python finds the plugin in this folder.
PYTHONPATH=".:$PYTHONPATH" mooring simulate -f cluster.yaml --config scheduler.yaml --until 45s
