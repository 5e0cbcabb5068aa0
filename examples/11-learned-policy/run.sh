mooring sweep sweep.yaml --jobs 1 --results "$(mktemp -d)/results.jsonl"
