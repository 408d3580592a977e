// Stands for the files in cuda/ in a build without CUDA.
#include "probe/faults.hpp"
#include "probe/loads.hpp"
#include "tmaops/error.hpp"

namespace tmaops::probe {
namespace {
[[noreturn]] void refuse() { throw Error(ErrorCode::no_cuda_build, {.where = "probe", .got = {}, .needed = {}}); }
}  // namespace

std::unique_ptr<Loader> make_gpu_loader() { refuse(); }
std::string run_fault(std::string_view) { refuse(); }

}  // namespace tmaops::probe
