// The named cases of multi-scale deformable attention, and what a configuration says about one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "tmaops/ms_deform_attn.hpp"

namespace tmaops::bench {

enum class Locations {
  uniform,  // U(0, 1)
  detr      // around reference points: the pixel centres in raster order (decoders: random), offsets normal with a
            // standard deviation of 2 to 4 pixels of the sampled level
};

/// Steps of a detector fused into the forward pass (docs/ms_deform_attn.md).
struct FusedSteps {
  bool softmax = false;
  int reference_components = 0;  // 2: points, 4: boxes, 0: none
  bool mask = false;
  bool border = false;
  double offset_scale = 0.5;  // of boxes

  std::string text() const;  // "softmax+mask", "none"; without the scale
  bool operator==(const FusedSteps&) const = default;
};

struct MsDeformAttnCase {
  std::string name;  // "enc/detr"
  std::int64_t batch = 1;
  std::int64_t heads = 8;
  std::int64_t channels = 32;
  std::int64_t points = 4;                   // of each level
  std::vector<std::int32_t> level_points{};  // where levels have different numbers: instead of `points`
  std::int64_t queries = 0;
  std::vector<LevelShape> levels{};
  Locations locations = Locations::uniform;
  bool raster_queries = true;  // reference points of detr locations: raster order, or random
  DType dtype = DType::f32;
  DType location_dtype = DType::f32;  // of locations and weights
  DType output_dtype = DType::f32;    // of the output, or backward of its gradient
  Sampling sampling = Sampling::bilinear;
  bool backward = false;
  bool deterministic = false;  // backward
  FusedSteps fused{};          // forward

  std::int64_t length() const;        // pixels of all levels
  std::int64_t row_points() const;    // of all levels, of one query and head
  std::int64_t value_length() const;  // S: with the borders where there are any
};

/// "100x167 50x84": height x width of each level. Throws Error bad_value.
std::vector<LevelShape> read_levels(const Settings& problem, const Setting& setting);
/// "100x167+50x84", for names of cases.
std::string levels_text(const std::vector<LevelShape>& levels);

/// Reads case (or the shape key by key), dtype, sampling, direction and fused steps. Throws Error for bad settings.
MsDeformAttnCase read_ms_deform_attn_case(const Settings& problem);

// --- ms_deform_attn_inputs.cpp: random locations, weights and masks as detectors have them ---------------------------
/// Where the case has reference points, these first, and the locations are offsets from them.
void fill_locations(const MsDeformAttnCase& c, const TensorView& locations, const TensorView& reference_points,
                    std::uint64_t seed);

/// A softmax of normal numbers over the levels and points of a query and head, or, where the case has the softmax
/// fused, these numbers.
void fill_attention_weights(const MsDeformAttnCase& c, const TensorView& weights, std::uint64_t seed);

/// Images smaller than their batch: what lies right of, or below, a part of the width and height is padding.
void fill_padding_mask(const MsDeformAttnCase& c, const TensorView& mask, std::uint64_t seed);

}  // namespace tmaops::bench
