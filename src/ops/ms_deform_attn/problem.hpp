// The problem a forward call poses, after every argument was checked, and the views it works on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/choose.hpp"
#include "core/registry.hpp"
#include "tmaops/ms_deform_attn.hpp"

namespace tmaops {
class ArgumentChecks;
class Workspace;
}  // namespace tmaops

namespace tmaops::ops::ms_deform_attn {

/// One feature level: its pixels are start + row * pitch + column in S, its points are first_point ... of a head's row
/// of sampling points.
struct Level {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t pitch = 0;  // width, or width + 2 between borders
  std::int64_t start = 0;
  std::int64_t points = 0;
  std::int64_t first_point = 0;
  friend bool operator==(const Level&, const Level&) = default;
};

struct Problem {
  std::int64_t batch = 0;     // N
  std::int64_t length = 0;    // S
  std::int64_t heads = 0;     // M
  std::int64_t channels = 0;  // D
  std::int64_t queries = 0;   // Lq
  std::int64_t points = 0;    // sampling points of one query and head, all levels together
  std::vector<Level> levels{};
  bool ragged = false;  // locations are (N, Lq, M, points, 2) instead of (N, Lq, M, L, P, 2)
  Sampling sampling = Sampling::bilinear;
  DType value_dtype = DType::f32;
  DType output_dtype = DType::f32;  // that of value, or f32
  DType location_dtype = DType::f32;
  DType weight_dtype = DType::f32;
  bool softmax = false;          // the weights are logits
  int reference_components = 0;  // 2 or 4: the locations are offsets from reference points; 0: there are none
  bool dense_references = true;  // of at most 32 bits; x and y next to each other, at a multiple of their common size
  bool masked = false;           // there is a padding mask
  bool bordered = false;         // every level of value lies in a border of one pixel
  bool dense_channels = true;    // the D channels of value, and of output, lie next to each other
  bool dense_output = true;      // those of output do
  int row_alignment = 16;        // bytes, at most 16: divides the address of every row of channels, of value and output
  bool dense_pairs = true;       // x and y of a location lie next to each other, at a multiple of their common size
  bool positive_strides = true;  // value's, of all its dimensions
  std::int64_t map_bytes = 0;    // from the first to the last byte of one image and head of value
  std::int64_t pixel_bytes = 0;  // of value: from a pixel to the next
  bool levels_on_device = false;  // their heights, widths and starts are not known here, and 0
  Device device{};

  /// The output has no elements.
  bool empty() const { return batch * queries * heads * channels == 0; }
  /// Whether another step is fused into the operator. A border is a matter of the layout alone.
  bool fused() const { return softmax || reference_components != 0 || masked; }
  /// The problem in the syntax of the configuration.
  std::string text() const;
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// For core/choice_cache.hpp.
std::size_t hash_of(const Problem& problem);

/// Level shapes (L, 2) and starts (L), i64, that lie on the device of value.
struct LevelViews {
  ConstTensorView shapes{};
  ConstTensorView starts{};
};

struct Arguments {
  ConstTensorView value{};
  ConstTensorView sampling_locations{};
  ConstTensorView attention_weights{};
  ConstTensorView reference_points{};
  ConstTensorView padding_mask{};
  double offset_scale = 0.5;  // of reference boxes
  LevelViews level_views{};   // given where Problem::levels_on_device says so
  TensorView output{};
  bool dependent_launch = false;
  Workspace* workspace = nullptr;
};

/// How a variant is set up.
struct Config {
  int groups = 0;  // of threads that share the samples of an item; 0: the variant has no groups
  /// "4 groups"; empty for a variant with a single way.
  std::string text() const;
  friend bool operator==(const Config&, const Config&) = default;
};

/// Checks every argument of ms_deform_attn; throws Error as its header says.
Problem make_problem(const ConstTensorView& value, std::span<const LevelShape> levels,
                     const ConstTensorView& sampling_locations, const ConstTensorView& attention_weights,
                     const TensorView& output, const MsDeformAttnOptions& options);

/// The checks that forward and backward share: everything but the output. `op` names the operator in messages.
Problem make_input_problem(std::string_view op, const ConstTensorView& value, std::span<const LevelShape> levels,
                           const ConstTensorView& sampling_locations, const ConstTensorView& attention_weights,
                           const MsDeformAttnOptions& options);

/// The checks of the rank and shape of output and grad_output, (N, Lq, M * D); fills their part of a problem whose
/// inputs were checked.
void check_rows(const ArgumentChecks& checks, std::string_view argument, const ConstTensorView& tensor,
                const ConstTensorView& value, Problem& problem);

/// No, in words, when the problem asks for more than the plain operator. A border is a matter of the layout alone.
Support supports_plain(const Problem& problem);

/// No, in words, when the output is f32 and the value is not.
Support supports_value_output(const Problem& problem);

/// Best first, reference last.
VariantTable<Problem, Arguments, Config> variants();
std::vector<VariantInfo> variant_list();

/// What runs: what the name says, or the best there is when it is empty.
Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name);

}  // namespace tmaops::ops::ms_deform_attn
