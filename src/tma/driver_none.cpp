// Stands for driver_cuda.cpp in a build without CUDA.
#include "tma/driver.hpp"
#include "tmaops/error.hpp"

namespace tmaops::tma {

void load_driver(int) {
  throw Error(ErrorCode::no_cuda_build, {.where = "making a tensor map", .got = {}, .needed = {}});
}

DriverAnswer encode_unchecked(const TensorMapSpec&, TensorMap&) {
  load_driver(0);
  return {};
}

}  // namespace tmaops::tma
