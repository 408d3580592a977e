#include "tmaops/ms_deform_attn.hpp"

#include <vector>

#include "c_api/option_fields.hpp"
#include "c_api/plan.hpp"

namespace tmaops::c_api {
namespace {

constexpr std::string_view kAttention = "ms_deform_attn";
constexpr std::string_view kAttentionBackward = "ms_deform_attn_backward";

std::vector<LevelShape> level_shapes(const Arguments& read, const tmaops_level_shape* levels, std::int64_t count) {
  std::vector<LevelShape> shapes;
  for (const auto [height, width] : read.list("levels", levels, count)) shapes.push_back({height, width});
  return shapes;
}

MsDeformAttnOptions attention_options(const Arguments& read, const tmaops_ms_deform_attn_options* given,
                                      std::int64_t level_count, Stream stream) {
  const auto options = read.options<tmaops_ms_deform_attn_options>(given, TMAOPS_MS_DEFORM_ATTN_OPTIONS);
  MsDeformAttnOptions made{.stream = stream};
  TMAOPS_MS_DEFORM_ATTN_OPTION_LIST(TMAOPS_READ)
  if (made.spatial_shapes.rank > 0) level_count = made.spatial_shapes.shape[0];
  if (options.level_start_index != nullptr)
    made.level_start_index = read.list("level_start_index", options.level_start_index, level_count);
  if (options.points_per_level != nullptr)
    made.points_per_level = read.list("points_per_level", options.points_per_level, level_count);
  return made;
}

MsDeformAttnGradients gradient_views(const Arguments& read, const tmaops_ms_deform_attn_gradients* given) {
  read.place("gradients", given);
  return {.value = read.optional_tensor("gradients.value", given->value),
          .sampling_locations = read.optional_tensor("gradients.sampling_locations", given->sampling_locations),
          .attention_weights = read.optional_tensor("gradients.attention_weights", given->attention_weights)};
}

}  // namespace
}  // namespace tmaops::c_api

using namespace tmaops::c_api;  // NOLINT(google-build-using-namespace): this file is a part of it

int tmaops_ms_deform_attn(const tmaops_tensor* value, const tmaops_level_shape* levels, int64_t level_count,
                          const tmaops_tensor* sampling_locations, const tmaops_tensor* attention_weights,
                          const tmaops_tensor* output, const tmaops_ms_deform_attn_options* options,
                          tmaops_stream stream) {
  return status_of_call(kAttention, [&](const Arguments& read) {
    const auto shapes = level_shapes(read, levels, level_count);
    tmaops::ms_deform_attn(read.tensor("value", value), shapes, read.tensor("sampling_locations", sampling_locations),
                           read.tensor("attention_weights", attention_weights), read.tensor("output", output),
                           attention_options(read, options, level_count, stream));
  });
}

int tmaops_plan_ms_deform_attn(const tmaops_tensor* value, const tmaops_level_shape* levels, int64_t level_count,
                               const tmaops_tensor* sampling_locations, const tmaops_tensor* attention_weights,
                               const tmaops_tensor* output, const tmaops_ms_deform_attn_options* options,
                               tmaops_plan** plan) {
  return status_of_plan(kAttention, plan, [&](const Arguments& read) {
    const auto shapes = level_shapes(read, levels, level_count);
    return tmaops::plan_ms_deform_attn(
        read.tensor("value", value), shapes, read.tensor("sampling_locations", sampling_locations),
        read.tensor("attention_weights", attention_weights), read.tensor("output", output),
        attention_options(read, options, level_count, nullptr));
  });
}

int tmaops_ms_deform_attn_workspace(const tmaops_tensor* value, const tmaops_level_shape* levels, int64_t level_count,
                                    const tmaops_tensor* sampling_locations, const tmaops_tensor* attention_weights,
                                    const tmaops_tensor* output, const tmaops_ms_deform_attn_options* options,
                                    size_t* bytes) {
  return status_of_workspace(kAttention, bytes, [&](const Arguments& read) {
    const auto shapes = level_shapes(read, levels, level_count);
    return tmaops::ms_deform_attn_workspace(
        read.tensor("value", value), shapes, read.tensor("sampling_locations", sampling_locations),
        read.tensor("attention_weights", attention_weights), read.tensor("output", output),
        attention_options(read, options, level_count, nullptr));
  });
}

int tmaops_ms_deform_attn_backward(const tmaops_tensor* value, const tmaops_level_shape* levels, int64_t level_count,
                                   const tmaops_tensor* sampling_locations, const tmaops_tensor* attention_weights,
                                   const tmaops_tensor* grad_output, const tmaops_ms_deform_attn_gradients* gradients,
                                   const tmaops_ms_deform_attn_options* options, tmaops_stream stream) {
  return status_of_call(kAttentionBackward, [&](const Arguments& read) {
    const auto shapes = level_shapes(read, levels, level_count);
    tmaops::ms_deform_attn_backward(
        read.tensor("value", value), shapes, read.tensor("sampling_locations", sampling_locations),
        read.tensor("attention_weights", attention_weights), read.tensor("grad_output", grad_output),
        gradient_views(read, gradients), attention_options(read, options, level_count, stream));
  });
}

int tmaops_plan_ms_deform_attn_backward(const tmaops_tensor* value, const tmaops_level_shape* levels,
                                        int64_t level_count, const tmaops_tensor* sampling_locations,
                                        const tmaops_tensor* attention_weights, const tmaops_tensor* grad_output,
                                        const tmaops_ms_deform_attn_gradients* gradients,
                                        const tmaops_ms_deform_attn_options* options, tmaops_plan** plan) {
  return status_of_plan(kAttentionBackward, plan, [&](const Arguments& read) {
    const auto shapes = level_shapes(read, levels, level_count);
    return tmaops::plan_ms_deform_attn_backward(
        read.tensor("value", value), shapes, read.tensor("sampling_locations", sampling_locations),
        read.tensor("attention_weights", attention_weights), read.tensor("grad_output", grad_output),
        gradient_views(read, gradients), attention_options(read, options, level_count, nullptr));
  });
}

int tmaops_ms_deform_attn_backward_workspace(const tmaops_tensor* value, const tmaops_level_shape* levels,
                                             int64_t level_count, const tmaops_tensor* sampling_locations,
                                             const tmaops_tensor* attention_weights, const tmaops_tensor* grad_output,
                                             const tmaops_ms_deform_attn_gradients* gradients,
                                             const tmaops_ms_deform_attn_options* options, size_t* bytes) {
  return status_of_workspace(kAttentionBackward, bytes, [&](const Arguments& read) {
    const auto shapes = level_shapes(read, levels, level_count);
    return tmaops::ms_deform_attn_backward_workspace(
        read.tensor("value", value), shapes, read.tensor("sampling_locations", sampling_locations),
        read.tensor("attention_weights", attention_weights), read.tensor("grad_output", grad_output),
        gradient_views(read, gradients), attention_options(read, options, level_count, nullptr));
  });
}
