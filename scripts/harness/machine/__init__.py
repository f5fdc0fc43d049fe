"""What the machine has: cores, processor, memory, GPUs, network interfaces, and where its kernel
says so."""
