"""The machine's cores, processor, memory, GPUs and network interfaces, and the kernel files that
report them."""
