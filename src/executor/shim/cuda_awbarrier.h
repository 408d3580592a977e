// Unknown to the executor.
#error "__mbarrier_t is unknown to the executor: device::Barrier of device/barrier.cuh is"
