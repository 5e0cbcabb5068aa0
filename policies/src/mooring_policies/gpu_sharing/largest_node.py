"""The node that policies measure others by: 128 cpus and 8 GPUs, as in the paper of FGD and its simulator."""

LARGEST_CPU_MILLI = 128_000
LARGEST_GPU_MILLI = 8_000
