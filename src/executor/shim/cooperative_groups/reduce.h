// Unknown to the executor.
#error "cooperative_groups::reduce is unknown to the executor: __reduce_add_sync() and device::group_sum() are"
