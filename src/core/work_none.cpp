// Work on a GPU in a build without a CUDA toolkit: no variant makes any.
#include "core/work_device.hpp"
#include "tmaops/error.hpp"

namespace tmaops {
namespace {

[[noreturn]] void refuse(std::string_view where) {
  throw Error(ErrorCode::internal,
              {.where = std::string(where), .got = "work on a GPU", .needed = "a build with CUDA"});
}

}  // namespace

void run_on_device(Device, const LaunchSite& site, std::span<const Work::Step>, Stream, Dependence) {
  refuse(site.where);
}
void finish_on_device(Device, const LaunchSite& site, std::span<const Work::Step>, Stream) { refuse(site.where); }
std::unique_ptr<RepeatedWork> repeat_on_device(Work work) { refuse(work.site().where); }
void* allocate_on_device(Device, std::size_t, Stream, std::string_view where) { refuse(where); }
void release_on_device(Device, void*, Stream) noexcept {}
Stream stream_of_plans(Device) { refuse("memory of a plan"); }

}  // namespace tmaops
