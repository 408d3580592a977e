// What a plan on a GPU repeats: kernel launches that are made ready once.
#pragma once

#include <functional>
#include <memory>

#include "core/work.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops {

/// The kernel launches of one call, with their parameters. Repeating them takes no decision again. Dependent launches
/// go to the driver with functions that were looked up once; others become a graph when they are repeated on one stream
/// (docs/findings/host.md, H2 and H4).
class RepeatedLaunches {
 public:
  /// Calls `launch`, and notes what launch_kernel() is asked for in this thread instead of doing it. `launch` does
  /// nothing else to a stream: that would neither be noted nor repeated. Null on the CPU.
  /// Throws what `launch` throws, and Error cuda_failed when a kernel cannot be loaded.
  static std::shared_ptr<const RepeatedLaunches> of(Device device, const std::function<void()>& launch);

  virtual ~RepeatedLaunches() = default;
  RepeatedLaunches(const RepeatedLaunches&) = delete;
  RepeatedLaunches& operator=(const RepeatedLaunches&) = delete;

  /// The launches in their order, on a stream of the device; from any thread. Throws Error cuda_failed.
  virtual void run(Stream stream) const = 0;

 protected:
  RepeatedLaunches() = default;
};

}  // namespace tmaops
