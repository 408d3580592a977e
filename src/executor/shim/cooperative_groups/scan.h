// Unknown to the executor.
#error "scans of cooperative groups are unknown to the executor: shfl_up() of a tile is"
