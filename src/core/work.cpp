#include "core/work.hpp"

#include <atomic>
#include <string>

#include "core/device_info.hpp"
#include "core/work_device.hpp"
#include "core/workspace.hpp"
#include "tmaops/error.hpp"

namespace tmaops {
namespace {

std::atomic<int> one_by_one{0};

class RepeatedOnCpu : public RepeatedWork {
 public:
  explicit RepeatedOnCpu(Work work) : work_(std::move(work)) {}
  void run(Stream stream) const override { work_.run(stream); }
  void rebind(Work work) override { work_ = std::move(work); }

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

unsigned char* Work::allocate(std::size_t bytes) {
  if (workspace_ == nullptr)
    throw Error(ErrorCode::internal,
                {.where = std::string(site_.where), .got = "no workspace", .needed = "one, to allocate from"});
  return static_cast<unsigned char*>(workspace_->allocate(bytes, site_.where));
}

void Work::run(Stream stream) const {
  if (call_) call_();
  if (!preparation_.empty()) run_on_device(device_, site_, preparation_, stream, Dependence::as_asked);
  // Kernels may read what was prepared before they wait for the kernel in front of them.
  const Dependence first = preparation_.empty() ? Dependence::as_asked : Dependence::not_the_first;
  if (!steps_.empty()) run_on_device(device_, site_, steps_, stream, first);
}

std::unique_ptr<RepeatedWork> RepeatedWork::of(Work work, Stream stream) {
  if (work.steps().empty()) return std::make_unique<RepeatedOnCpu>(std::move(work));
  if (!work.preparation().empty()) finish_on_device(work.device(), work.site(), work.preparation(), stream);
  return repeat_on_device(std::move(work));
}

KernelsOneByOne::KernelsOneByOne() { ++one_by_one; }
KernelsOneByOne::~KernelsOneByOne() { --one_by_one; }
bool KernelsOneByOne::wanted() { return one_by_one.load(std::memory_order_relaxed) != 0; }

}  // namespace tmaops
