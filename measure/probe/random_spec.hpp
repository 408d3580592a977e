// Random specifications, most of them near the edge of a rule. The same seed gives the same sequence on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <span>

#include "tmaops/tensor_map.hpp"

namespace tmaops::probe {

/// Options of the generator.
struct RandomSpecOptions {
  std::uint64_t seed = 1;
  std::uint64_t base_address = std::uint64_t{1} << 32;  // a multiple of 1024; of real memory where a driver is asked
  bool blackwell = false;                               // packed types and 128B_ATOM swizzles too
};

class RandomSpecs {
 public:
  explicit RandomSpecs(const RandomSpecOptions& options) : options_(options), random_(options.seed) {}

  /// A specification that keeps all error-level rules.
  tma::TensorMapSpec ordinary();
  /// An ordinary one with up to three parts moved onto, just inside or just outside of a rule's edge. About half of
  /// these break a rule. All of them fit the driver's parameters (fits_driver).
  tma::TensorMapSpec near_edge();
  /// A number in [0, count).
  std::uint64_t below(std::uint64_t count) { return random_() % count; }

 private:
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  std::size_t index(std::span<const std::int64_t> list) { return static_cast<std::size_t>(below(list.size())); }
  tma::ElementType any_type();
  /// Elements of a row of a multiple of 16 bytes that is at most 256 elements, and the swizzle span or 256 bytes.
  std::int64_t inner_row(const tma::TensorMapSpec& spec, bool swizzled);
  void fill_tiled(tma::TensorMapSpec& spec);
  void fill_im2col(tma::TensorMapSpec& spec);
  void move_to_edge(tma::TensorMapSpec& spec);
  void move_tiled_to_edge(tma::TensorMapSpec& spec);
  void move_im2col_to_edge(tma::TensorMapSpec& spec);

  RandomSpecOptions options_;
  std::mt19937_64 random_;
};

}  // namespace tmaops::probe
