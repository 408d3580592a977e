// Compares the host model of a tile load with the hardware, bit for bit.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "probe/descriptors.hpp"
#include "probe/random_spec.hpp"
#include "tmaops/tensor_map.hpp"

namespace tmaops::probe {

/// A random load through a valid tiled map. Most of them go across a border of the tensor. The same seed gives the same
/// sequence on every machine.
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
      : memory_bytes_(memory_bytes), shared_bytes_(shared_bytes), specs_({.seed = seed}), random_(seed) {}
  RandomLoad next();

 private:
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(count));
  }
  std::int64_t coordinate(const tma::TensorMapSpec& spec, std::size_t dimension);

  std::int64_t memory_bytes_;
  std::int64_t shared_bytes_;
  RandomSpecs specs_;
  std::mt19937_64 random_;  // of the coordinates
};

/// Bytes from the tensor's address to the end of its last element.
std::int64_t tensor_bytes(const tma::TensorMapSpec& spec);

/// Bytes of the memory that holds the random tensors, and of the shared memory that is compared.
inline constexpr std::int64_t kLoadMemoryBytes = 4 << 20;
inline constexpr std::int64_t kLoadWindowBytes = 96 * 1024;
/// What the window holds before the load.
inline constexpr std::byte kLoadPoison{0xCC};

/// Does one load on the GPU. make_gpu_loader() makes one; tests have their own.
class Loader {
 public:
  virtual ~Loader() = default;
  /// Copies `memory` to the device and returns its address there.
  virtual std::uint64_t memory(const std::vector<std::byte>& memory) = 0;
  /// The window after the load. The address of `spec` is in device memory, the destination counts from the window's
  /// start.
  virtual std::vector<std::byte> window(const tma::TensorMapSpec& spec, const tma::TileLoad& load) = 0;
};

/// Throws Error as encode() does.
std::unique_ptr<Loader> make_gpu_loader();

struct LoadMismatch {
  RandomLoad load;
  std::int64_t first_byte = 0;  // of the window
  int got = 0;
  int want = 0;
};

struct LoadRun {
  std::size_t count = 0;
  std::size_t exact = 0;
  std::int64_t bytes = 0;  // compared
  /// Number of loads by property: "rank 3", "swizzle 64B", "type f16", "across a border", ...
  std::map<std::string, std::size_t> covered{};
  std::vector<LoadMismatch> mismatches{};  // the first kMostShown
  static constexpr std::size_t kMostShown = 20;
};

LoadRun run_loads(std::uint64_t seed, std::size_t count, Loader& loader, const Observer& observer);

}  // namespace tmaops::probe
