"""The workloads of upstream's scheduler_perf: its language, and clusters to run it on."""
