// The operators of tmaops.torch on torch's stable ABI: one library for torch 2.10 and newer, on CPU and CUDA.
// Schemas, fakes and gradients are registered in python/tmaops/torch.py, but for the schema of ms_deform_attn_eager;
// here are the kernels, which hand torch's tensors to the C interface. libtmaops.so is in the process already: Python
// loads it first.
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "tmaops/tmaops.h"

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using Integers = std::vector<int64_t>;
using Text = std::string;

[[noreturn]] void fail(const Text& message) { throw std::runtime_error("tmaops: " + message); }

template <typename Function>
Function* library_function(const char* name) {
  static void* const library = dlopen("libtmaops.so", RTLD_NOW | RTLD_NOLOAD);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) fail(Text(name) + " is not loaded: import tmaops before this library");
  return reinterpret_cast<Function*>(found);
}
// The function of this name in libtmaops.so, looked up once.
#define TMAOPS_FUNCTION(name) static auto* const name = library_function<decltype(::tmaops_##name)>("tmaops_" #name)

void check(int code) {
  if (code == 0) return;
  TMAOPS_FUNCTION(last_error);
  throw std::runtime_error(last_error()->message);
}

tmaops_dtype dtype_of(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case ScalarType::Double:
      return TMAOPS_F64;
    case ScalarType::Float:
      return TMAOPS_F32;
    case ScalarType::Half:
      return TMAOPS_F16;
    case ScalarType::BFloat16:
      return TMAOPS_BF16;
    case ScalarType::Long:
      return TMAOPS_I64;
    case ScalarType::Int:
      return TMAOPS_I32;
    case ScalarType::Byte:
      return TMAOPS_U8;
    case ScalarType::Bool:
      return {tmaops_dtype_bool, 8, 1};
    default:
      return {tmaops_dtype_int, 0, 1};  // refused by the library, by the name of the argument
  }
}

tmaops_tensor view(const Tensor& tensor) {
  const bool gpu = tensor.is_cuda();
  void* data = nullptr;
  if (aoti_torch_get_data_ptr(tensor.get(), &data) != AOTI_TORCH_SUCCESS) fail("a tensor without memory");
  return {data,
          {gpu ? tmaops_device_cuda : tmaops_device_cpu, gpu ? tensor.get_device() : 0},
          static_cast<int32_t>(tensor.dim()),
          dtype_of(tensor),
          tensor.sizes().data(),
          tensor.strides().data(),
          0};
}

/// A view of a tensor that may be absent.
struct OptionalView {
  explicit OptionalView(const std::optional<Tensor>& tensor) {
    if (tensor) storage = view(*tensor);
    pointer = tensor ? &storage : nullptr;
  }
  tmaops_tensor storage{};
  const tmaops_tensor* pointer;
};

/// Torch's current stream of the tensor's device. libtorch_cuda.so is loaded where there is a tensor of a GPU.
tmaops_stream stream_of(const Tensor& tensor) {
  if (!tensor.is_cuda()) return nullptr;
  using Current = AOTITorchError(int32_t, void**);
  static auto* const current = reinterpret_cast<Current*>(
      dlsym(dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD), "aoti_torch_get_current_cuda_stream"));
  void* stream = nullptr;
  if (current == nullptr || current(tensor.get_device(), &stream) != AOTI_TORCH_SUCCESS)
    fail("torch has no current stream");
  return stream;
}

int number_of(const Text& value, std::initializer_list<const char*> known, const char* what) {
  int number = 0;
  Text names;
  for (const char* name : known) {
    if (value == name) return number;
    names += (number++ == 0 ? "" : ", ") + Text(name);
  }
  fail(Text(what) + ": got '" + value + "', needed one of " + names);
}

/// A new tensor on the device of `like`. torch::stable::new_empty would go through the dispatcher, boxed.
Tensor empty(const Tensor& like, std::span<const int64_t> shape, std::optional<ScalarType> dtype = {}) {
  constexpr std::size_t kMostDimensions = 8;  // the library takes no more
  if (shape.size() > kMostDimensions) fail("a tensor of more than 8 dimensions");
  int64_t strides[kMostDimensions];
  int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0; step *= std::max<int64_t>(shape[d], 1)) strides[d] = step;
  int32_t device = 0;
  AtenTensorHandle made = nullptr;
  if (aoti_torch_get_device_type(like.get(), &device) != AOTI_TORCH_SUCCESS ||
      aoti_torch_empty_strided(static_cast<int64_t>(shape.size()), shape.data(), strides,
                               static_cast<int32_t>(dtype.value_or(like.scalar_type())), device,
                               like.get_device_index(), &made) != AOTI_TORCH_SUCCESS)
    fail("torch could not allocate an output");
  return Tensor(made);
}

// --- multi-scale deformable attention --------------------------------------------------------------------------------

/// Options and levels. They point into the arguments, which must stay.
struct Attention {
  Attention(const Integers& levels, const std::optional<Integers>& level_starts, const std::optional<Integers>& points,
            const Text& sampling, const std::optional<Tensor>& spatial_shapes,
            const std::optional<Tensor>& starts_tensor)
      : shapes(reinterpret_cast<const tmaops_level_shape*>(levels.data())),
        count(static_cast<int64_t>(levels.size() / 2)),
        shapes_there(spatial_shapes),
        starts_there(starts_tensor) {
    if (levels.size() % 2 != 0) fail("levels: an odd number of sides");
    options.sampling = number_of(sampling, {"bilinear", "nearest"}, "sampling");
    options.spatial_shapes = shapes_there.pointer;
    options.level_starts = starts_there.pointer;
    if (level_starts) {
      if (static_cast<int64_t>(level_starts->size()) != count) fail("level_start_index: not one number for each level");
      options.level_start_index = level_starts->data();
    }
    if (points) {
      counts.assign(points->begin(), points->end());
      const int64_t there = spatial_shapes && spatial_shapes->dim() > 0 ? spatial_shapes->size(0) : 0;
      if (static_cast<int64_t>(counts.size()) != (spatial_shapes ? there : count))
        fail("points_per_level: not one number for each level");
      options.points_per_level = counts.data();
    }
  }
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  static_assert(sizeof(tmaops_level_shape) == 2 * sizeof(int64_t));
  const tmaops_level_shape* shapes;
  int64_t count;
  std::vector<int32_t> counts{};
  OptionalView shapes_there;
  OptionalView starts_there;
  tmaops_ms_deform_attn_options options = TMAOPS_MS_DEFORM_ATTN_OPTIONS;
};

Tensor attend(const Tensor& value, const tmaops_level_shape* levels, int64_t count, const Tensor& sampling_locations,
              const Tensor& attention_weights, const tmaops_ms_deform_attn_options& options,
              std::optional<ScalarType> out_dtype) {
  TMAOPS_FUNCTION(ms_deform_attn);
  const bool ranks = value.dim() == 4 && sampling_locations.dim() > 1;  // else the library says what is wrong
  int64_t shape[3] = {};
  if (ranks) shape[0] = value.size(0), shape[1] = sampling_locations.size(1), shape[2] = value.size(2) * value.size(3);
  const Tensor output = empty(value, std::span(shape, ranks ? 3 : 0), out_dtype);
  const tmaops_tensor values = view(value), locations = view(sampling_locations), weights = view(attention_weights),
                      result = view(output);
  check(ms_deform_attn(&values, levels, count, &locations, &weights, &result, &options, stream_of(value)));
  return output;
}

Tensor ms_deform_attn(const Tensor& value, const Integers& levels, const Tensor& sampling_locations,
                      const Tensor& attention_weights, const std::optional<Integers>& level_start_index,
                      const std::optional<Integers>& points_per_level, const Text& sampling,
                      const std::optional<Tensor>& spatial_shapes, const std::optional<Tensor>& level_starts,
                      std::optional<ScalarType> out_dtype) {
  const Attention attention(levels, level_start_index, points_per_level, sampling, spatial_shapes, level_starts);
  return attend(value, attention.shapes, attention.count, sampling_locations, attention_weights, attention.options,
                out_dtype);
}

/// With every option at its default, and the levels as a tensor (L, 2) on the host: torch takes longer to convert a
/// list than to allocate a tensor.
Tensor ms_deform_attn_eager(const Tensor& value, const Tensor& levels, const Tensor& sampling_locations,
                            const Tensor& attention_weights) {
  static constexpr tmaops_ms_deform_attn_options kDefault = TMAOPS_MS_DEFORM_ATTN_OPTIONS;
  if (levels.is_cuda() || levels.scalar_type() != ScalarType::Long || levels.dim() != 2 || levels.size(1) != 2 ||
      !levels.is_contiguous())
    fail("levels: not an i64 tensor (L, 2) on the host");
  return attend(value, static_cast<const tmaops_level_shape*>(view(levels).data), levels.size(0), sampling_locations,
                attention_weights, kDefault, {});
}

std::tuple<Tensor, Tensor, Tensor> ms_deform_attn_backward(
    const Tensor& grad_output, const Tensor& value, const Integers& levels, const Tensor& sampling_locations,
    const Tensor& attention_weights, const std::optional<Integers>& level_start_index,
    const std::optional<Integers>& points_per_level, const Text& sampling, int64_t needed, bool deterministic,
    const std::optional<Tensor>& spatial_shapes, const std::optional<Tensor>& level_starts) {
  TMAOPS_FUNCTION(ms_deform_attn_backward);
  Attention attention(levels, level_start_index, points_per_level, sampling, spatial_shapes, level_starts);
  attention.options.deterministic = deterministic;
  const auto gradient = [&](const Tensor& input, int64_t bit) {
    static constexpr int64_t kNothing[] = {0};
    return empty(input,
                 (needed & bit) != 0 ? std::span(input.sizes().data(), input.sizes().size()) : std::span(kNothing, 1));
  };
  const Tensor grad_value = gradient(value, 1), grad_locations = gradient(sampling_locations, 2),
               grad_weights = gradient(attention_weights, 4);
  const tmaops_tensor values = view(value), locations = view(sampling_locations), weights = view(attention_weights),
                      grad = view(grad_output);
  const tmaops_tensor written[] = {view(grad_value), view(grad_locations), view(grad_weights)};
  const auto wanted = [&](int index) { return (needed >> index & 1) != 0 ? &written[index] : nullptr; };
  const tmaops_ms_deform_attn_gradients gradients{wanted(0), wanted(1), wanted(2)};
  check(ms_deform_attn_backward(&values, attention.shapes, attention.count, &locations, &weights, &grad, &gradients,
                                &attention.options, stream_of(value)));
  return {grad_value, grad_locations, grad_weights};
}

// --- resampling ------------------------------------------------------------------------------------------------------

/// Offsets of packed rows as a list or a tensor.
struct Offsets {
  Offsets(const std::optional<Integers>& given, const std::optional<Tensor>& tensor)
      : list(given),
        view(tensor),
        trajectories(tensor  ? (tensor->dim() == 0 ? 0 : tensor->size(0)) - 1
                     : given ? static_cast<int64_t>(given->size()) - 1
                             : 0) {}
  explicit operator bool() const { return list || view.pointer != nullptr; }

  const std::optional<Integers>& list;
  OptionalView view;
  int64_t trajectories;
};

tmaops_resample_options resample_options(const Tensor& times, const Text& interpolation, const Text& outside,
                                         const Text& duplicates, std::optional<double> max_gap, const Offsets& source,
                                         const Offsets& target) {
  tmaops_resample_options options{};
  options.size = sizeof options;
  options.interpolation = number_of(interpolation,
                                    {"linear", "previous", "next", "nearest", "cubic", "slerp", "mean", "sum", "min",
                                     "max", "any", "count", "lowpass"},
                                    "interpolation");
  options.outside = number_of(outside, {"hold", "nan", "extrapolate", "error"}, "outside");
  options.duplicates = number_of(duplicates, {"error", "last"}, "duplicates");
  if (max_gap && times.scalar_type() == ScalarType::Long)
    options.max_gap.nanoseconds = std::llround(*max_gap);
  else if (max_gap)
    options.max_gap.seconds = *max_gap;
  if (source.list) {
    options.source_offsets = source.list->data();
    options.source_offset_count = static_cast<int64_t>(source.list->size());
  }
  if (target.list) {
    options.target_offsets = target.list->data();
    options.target_offset_count = static_cast<int64_t>(target.list->size());
  }
  options.source_offset_tensor = source.view.pointer;
  options.target_offset_tensor = target.view.pointer;
  return options;
}

int64_t last_extent(const Tensor& tensor) { return tensor.dim() == 0 ? 0 : tensor.size(tensor.dim() - 1); }

Tensor resample(const Tensor& values, const Tensor& source_times, const Tensor& target_times, const Text& interpolation,
                const Text& outside, const Text& duplicates, std::optional<double> max_gap,
                const std::optional<Integers>& source_offsets, const std::optional<Integers>& target_offsets,
                const std::optional<Tensor>& source_offset_tensor, const std::optional<Tensor>& target_offset_tensor) {
  TMAOPS_FUNCTION(resample);
  const Offsets of_source(source_offsets, source_offset_tensor), of_target(target_offsets, target_offset_tensor);
  const auto options =
      resample_options(source_times, interpolation, outside, duplicates, max_gap, of_source, of_target);
  Integers shape{last_extent(target_times), last_extent(values)};
  if (!of_target) {
    const int64_t batch = of_source ? of_source.trajectories : values.dim() == 0 ? 0 : values.size(0);
    shape.insert(shape.begin(), batch < 0 ? 0 : batch);
  }
  const Tensor output = empty(values, shape);
  const tmaops_tensor source = view(values), times = view(source_times), targets = view(target_times),
                      result = view(output);
  check(resample(&source, &times, &targets, nullptr, &result, &options, stream_of(values)));
  return output;
}

Tensor resample_backward(const Tensor& grad_output, const Tensor& source_times, const Tensor& target_times,
                         int64_t samples, const Text& interpolation, const Text& outside, const Text& duplicates,
                         std::optional<double> max_gap, const std::optional<Integers>& source_offsets,
                         const std::optional<Integers>& target_offsets,
                         const std::optional<Tensor>& source_offset_tensor,
                         const std::optional<Tensor>& target_offset_tensor, const std::optional<Tensor>& values) {
  TMAOPS_FUNCTION(resample_backward);
  const Offsets of_source(source_offsets, source_offset_tensor), of_target(target_offsets, target_offset_tensor);
  auto options = resample_options(source_times, interpolation, outside, duplicates, max_gap, of_source, of_target);
  const OptionalView of_values(values);
  options.values = of_values.pointer;
  Integers shape{samples, last_extent(grad_output)};
  if (!of_source) shape.insert(shape.begin(), grad_output.dim() == 0 ? 0 : grad_output.size(0));
  const Tensor gradient = empty(grad_output, shape);
  const tmaops_tensor grad = view(grad_output), times = view(source_times), targets = view(target_times),
                      result = view(gradient);
  check(resample_backward(&times, &targets, nullptr, &grad, &result, &options, stream_of(grad_output)));
  return gradient;
}

// --- matrix multiplication -------------------------------------------------------------------------------------------

Tensor gemm(const Tensor& a, const Tensor& b, const std::optional<Tensor>& bias, const Text& activation,
            std::optional<ScalarType> out_dtype) {
  TMAOPS_FUNCTION(gemm);
  Integers shape(a.sizes().begin(), a.sizes().end());
  if (!shape.empty()) shape.back() = last_extent(b);
  if (b.dim() == 3 && a.dim() == 2) shape.insert(shape.begin(), b.size(0));
  const Tensor output = empty(a, shape, out_dtype);
  const OptionalView added(bias);
  tmaops_gemm_options options = TMAOPS_GEMM_OPTIONS;
  options.bias = added.pointer;
  options.activation = number_of(activation, {"none", "relu", "gelu", "silu"}, "activation");
  const tmaops_tensor left = view(a), right = view(b), result = view(output);
  check(gemm(&left, &right, &result, &options, stream_of(a)));
  return output;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(tmaops, library) {
  library.def(
      "ms_deform_attn_eager(Tensor value, Tensor levels, Tensor sampling_locations, Tensor attention_weights) -> "
      "Tensor");
}

// For CPU and CUDA alike. The operators named ..._kernel are those that compiled graphs hold.
#define TMAOPS_IMPLEMENT(name)           \
  library.impl(#name, TORCH_BOX(&name)); \
  library.impl(#name "_kernel", TORCH_BOX(&name))
#define TMAOPS_IMPLEMENT_ALL()                                            \
  library.impl("ms_deform_attn_eager", TORCH_BOX(&ms_deform_attn_eager)); \
  TMAOPS_IMPLEMENT(ms_deform_attn);                                       \
  TMAOPS_IMPLEMENT(ms_deform_attn_backward);                              \
  TMAOPS_IMPLEMENT(resample);                                             \
  TMAOPS_IMPLEMENT(resample_backward);                                    \
  TMAOPS_IMPLEMENT(gemm)

STABLE_TORCH_LIBRARY_IMPL(tmaops, CPU, library) { TMAOPS_IMPLEMENT_ALL(); }
STABLE_TORCH_LIBRARY_IMPL(tmaops, CUDA, library) { TMAOPS_IMPLEMENT_ALL(); }
