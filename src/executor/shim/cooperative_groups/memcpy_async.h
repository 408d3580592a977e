// Unknown to the executor.
#error "cooperative_groups::memcpy_async is unknown to the executor: device/cp_async.cuh and device/bulk_copy.cuh are"
