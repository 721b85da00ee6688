"""Names of other libraries, mapped to emberflow's, so that programs written for them run unchanged. Tables of names only."""
