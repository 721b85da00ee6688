"""Other libraries' names for what emberflow has, so that their programs run unchanged. Tables of names, nothing else."""
