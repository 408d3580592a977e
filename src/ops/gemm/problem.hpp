// A GEMM that passed all argument checks: what variants decide on, and what they work on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/choose.hpp"
#include "core/device_info.hpp"
#include "core/registry.hpp"
#include "core/workspace.hpp"
#include "tmaops/gemm.hpp"

namespace tmaops::ops::gemm {

/// Along which index a matrix is contiguous; `general` when along neither.
enum class Order : std::uint8_t { row, column, general };

/// How one matrix lies in memory. Strides count elements; the batch stride is 0 for a matrix that serves every batch.
struct MatrixLayout {
  DType dtype = DType::f32;
  Order order = Order::row;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;     // from (i, j) to (i + 1, j)
  std::int64_t column_stride = 0;  // from (i, j) to (i, j + 1)
  std::int64_t batch_stride = 0;
  int alignment = 1;  // greatest power of two up to 128 that divides the address of every batch's first element, bytes

  /// Distance between rows of a row-major, or columns of a column-major matrix, in elements. With a single one of them
  /// it is what a dense matrix has. May be 0 or negative for an input.
  std::int64_t leading_dimension() const;
  std::int64_t offset(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    return batch * batch_stride + row * row_stride + column * column_stride;
  }
  friend bool operator==(const MatrixLayout&, const MatrixLayout&) = default;
};

/// The order of a rows x columns matrix by its strides. Where an extent of 1 leaves a choice, the other extent decides,
/// so that a contiguous vector is contiguous along its length.
Order order_of(std::int64_t rows, std::int64_t columns, std::int64_t row_stride, std::int64_t column_stride);

struct Problem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  MatrixLayout a{};  // m x k
  MatrixLayout b{};  // k x n
  MatrixLayout d{};  // m x n
  float alpha = 1.0F;
  float beta = 0.0F;
  bool c_is_d = false;                // C is read from D's own memory
  std::optional<MatrixLayout> c{};    // m x n; only when beta != 0
  std::optional<DType> bias_dtype{};  // set when there is a bias
  BiasAxis bias_axis = BiasAxis::column;
  std::int64_t bias_stride = 1;
  Activation activation = Activation::none;
  Device device{};

  /// D has no elements.
  bool empty() const { return m == 0 || n == 0 || batch == 0; }
  /// RC, CR, RR or CC; nothing when A or B is contiguous along neither of its indices.
  std::optional<GemmMode> mode() const;
  /// In the configuration's syntax: "gemm: {mode: RC, m: 1024, n: 1024, k: 1024, dtype: f16}", with what differs from
  /// the default.
  std::string text() const;
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// For core/choice_cache.hpp.
std::size_t hash_of(const Problem& problem);

/// The memory of a call.
struct Arguments {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  const void* c = nullptr;     // null when beta is 0
  const void* bias = nullptr;  // null when there is none
  bool dependent_launch = false;
  Workspace* workspace = nullptr;
};

/// How a GPU variant cuts D into tiles. A variant with a single way leaves it empty.
struct Config {
  int rows = 0;
  int columns = 0;
  int cluster = 1;       // blocks that fetch one tile of B together (multicast): c8
  int splits = 1;        // blocks of a cluster that share a tile's K (split-K): k2
  int parts = 1;         // of K, whose sums a second kernel adds: p33
  bool swapped = false;  // tiles of D^T = B^T A^T, whose rows are columns of D: t
  int cuts = 1;          // parts along N of each tile of the last wave, where all of those then run at once

  /// "64x128", "64x64k2", "128x128p33", "128x160t"; empty for a variant with a single way.
  std::string text() const;
  friend bool operator==(const Config&, const Config&) = default;
};

/// What runs.
using Choice = tmaops::Choice<Problem, Arguments, Config>;

/// Checks every argument and says what is to be computed. Throws Error as gemm() does.
Problem make_problem(const ConstTensorView& a, const ConstTensorView& b, const TensorView& d,
                     const GemmOptions& options);

/// The same product as D^T = B^T A^T: extents, operands and the bias's index exchanged. A column-major D becomes
/// row-major. The caller exchanges the pointers of a and b.
Problem transposed(const Problem& problem);

/// The form of a problem in which D is row-major, unless its strides are general.
Problem row_major_form(const Problem& problem);

/// A call in that form.
struct RowMajorForm {
  Problem problem;
  Arguments arguments;

  RowMajorForm(const Problem& given, const Arguments& its) : problem(row_major_form(given)), arguments(its) {
    if (given.d.order == Order::column) std::swap(arguments.a, arguments.b);
  }
};

/// What runs. `name`: a variant, which may have its tile behind a slash ("wgmma_tma/64x128"). With an empty name on a
/// GPU what was measured to be best (GemmOptions::tuning), else what is estimated to be best.
Choice select(const Problem& problem, const DeviceInfo& device, std::string_view name = "",
              const std::string& tuning = "");

/// Every variant of the device that may be chosen, with each of its tiles for a problem.
std::vector<Choice> every_choice(const Problem& problem, const DeviceInfo& device);

VariantTable<Problem, Arguments, Config> variants();

}  // namespace tmaops::ops::gemm
