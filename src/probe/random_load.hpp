// Random loads through valid tiled maps, most of them across a border of the tensor. The same seed gives the same
// sequence on every machine.
#pragma once

#include <cstdint>
#include <random>

#include "tmaops/tensor_map.hpp"

namespace tmaops::probe {

struct RandomLoad {
  tma::TensorMapSpec spec;  // the address is an offset into the memory that holds the tensor
  tma::TileLoad load;
};

/// Every kind of load that the host model covers: ranks 1 to 5, every plain type, the three swizzles and none, both
/// fills, element strides, padded, overlapping and zero strides, coordinates before, across and beyond every border.
class RandomLoads {
 public:
  /// Every tensor fits in `memory_bytes`, and no tile ends beyond `shared_bytes`.
  RandomLoads(std::uint64_t seed, std::int64_t memory_bytes, std::int64_t shared_bytes)
      : memory_bytes_(memory_bytes), shared_bytes_(shared_bytes), random_(seed) {}
  RandomLoad next();

 private:
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(count));
  }
  tma::TensorMapSpec any_spec();
  void add_strides(tma::TensorMapSpec& spec);
  std::int64_t coordinate(const tma::TensorMapSpec& spec, std::size_t dimension);

  std::int64_t memory_bytes_;
  std::int64_t shared_bytes_;
  std::mt19937_64 random_;
};

/// Bytes from the tensor's address to the end of its last element.
std::int64_t tensor_bytes(const tma::TensorMapSpec& spec);

}  // namespace tmaops::probe
