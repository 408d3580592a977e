// Work on a GPU in a build without a CUDA toolkit: no variant makes any.
#include "core/work_device.hpp"
#include "tmaops/error.hpp"

namespace tmaops {
namespace {

[[noreturn]] void refuse(const Work& work) {
  throw Error(ErrorCode::internal,
              {.where = std::string(work.site().where), .got = "work on a GPU", .needed = "a build with CUDA"});
}

}  // namespace

void run_on_device(const Work& work, Stream) { refuse(work); }
std::unique_ptr<const RepeatedWork> repeat_on_device(Work work) { refuse(work); }

}  // namespace tmaops
