#include "core/work.hpp"

#include <atomic>
#include <string>

#include "core/device_info.hpp"
#include "core/work_device.hpp"
#include "tmaops/error.hpp"

namespace tmaops {
namespace {

std::atomic<int> one_by_one{0};

class RepeatedOnCpu : public RepeatedWork {
 public:
  explicit RepeatedOnCpu(Work work) : work_(std::move(work)) {}
  void run(Stream stream) const override { work_.run(stream); }

 private:
  Work work_;
};

}  // namespace

LaunchShape Work::checked(LaunchShape shape) const {
  if (shape.shared_bytes > site_.smem)
    throw Error(ErrorCode::internal, {.where = std::string(site_.where),
                                      .got = std::to_string(shape.shared_bytes) + " B of shared memory",
                                      .needed = "at most smem(" + std::to_string(site_.smem) + ")"});
  shape.dependent = shape.dependent && has_dependent_launch(device_info(device_));
  return shape;
}

void Work::run(Stream stream) const {
  if (call_) call_();
  if (!steps_.empty()) run_on_device(*this, stream);
}

std::unique_ptr<const RepeatedWork> RepeatedWork::of(Work work) {
  if (work.steps().empty()) return std::make_unique<RepeatedOnCpu>(std::move(work));
  return repeat_on_device(std::move(work));
}

KernelsOneByOne::KernelsOneByOne() { ++one_by_one; }
KernelsOneByOne::~KernelsOneByOne() { --one_by_one; }
bool KernelsOneByOne::wanted() { return one_by_one.load(std::memory_order_relaxed) != 0; }

}  // namespace tmaops
