// Stands for the files in cuda/ in a build without CUDA.
#include "core/fail.hpp"
#include "probe/faults.hpp"
#include "probe/loads.hpp"

namespace tmaops::probe {
namespace {
[[noreturn]] void refuse() { fail(ErrorCode::no_cuda_build, "probe", {}, {}); }
}  // namespace

std::unique_ptr<Loader> make_gpu_loader() { refuse(); }
std::string run_fault(std::string_view) { refuse(); }

}  // namespace tmaops::probe
