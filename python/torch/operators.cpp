// The operators of tmaops.torch on torch's stable ABI: one library for torch 2.10 and newer, on CPU and CUDA.
// Schemas, fakes and gradients are registered in python/tmaops/torch.py; here are the kernels, which hand torch's
// tensors to the C interface. libtmaops.so is in the process already: Python loads it first.
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
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

constexpr std::pair<ScalarType, tmaops_dtype> kTypes[] = {
    {ScalarType::Double, TMAOPS_F64}, {ScalarType::Float, TMAOPS_F32},
    {ScalarType::Half, TMAOPS_F16},   {ScalarType::BFloat16, TMAOPS_BF16},
    {ScalarType::Long, TMAOPS_I64},   {ScalarType::Int, TMAOPS_I32},
    {ScalarType::Byte, TMAOPS_U8},    {ScalarType::Bool, {tmaops_dtype_bool, 8, 1}}};

tmaops_dtype dtype_of(const Tensor& tensor) {
  const auto* const found =
      std::ranges::find(kTypes, tensor.scalar_type(), &std::pair<ScalarType, tmaops_dtype>::first);
  if (found != std::end(kTypes)) return found->second;
  return {tmaops_dtype_int, 0, 1};  // refused by the library, by the name of the argument
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

// --- options ---------------------------------------------------------------------------------------------------------
// The options of options.h that torch's operators take: as parameters of a function, and from there into the C struct
// `options`. They point into the arguments, which must stay.

#define TMAOPS_FORWARD_none(...)
#define TMAOPS_FORWARD_backward(...)
#define TMAOPS_FORWARD_forward(...) __VA_ARGS__
#define TMAOPS_FORWARD_both(...) __VA_ARGS__
#define TMAOPS_BACKWARD_none(...)
#define TMAOPS_BACKWARD_forward(...)
#define TMAOPS_BACKWARD_backward(...) __VA_ARGS__
#define TMAOPS_BACKWARD_both(...) __VA_ARGS__

#define TMAOPS_FORWARD(kind, name, torch, ...) TMAOPS_FORWARD_##torch(, TMAOPS_TYPE_##kind name)
#define TMAOPS_BACKWARD(kind, name, torch, ...) TMAOPS_BACKWARD_##torch(, TMAOPS_TYPE_##kind name)
#define TMAOPS_TYPE_f32 double
#define TMAOPS_TYPE_f64 double
#define TMAOPS_TYPE_i32 int64_t
#define TMAOPS_TYPE_flag bool
#define TMAOPS_TYPE_word const Text&
#define TMAOPS_TYPE_time std::optional<double>
#define TMAOPS_TYPE_tensor const std::optional<Tensor>&
#define TMAOPS_TYPE_i64_list const std::optional<Integers>&
#define TMAOPS_TYPE_i32_list const std::optional<Integers>&

#define TMAOPS_SET_FORWARD(kind, name, torch, ...) TMAOPS_FORWARD_##torch(TMAOPS_SET_##kind(name))
#define TMAOPS_SET_BACKWARD(kind, name, torch, ...) TMAOPS_BACKWARD_##torch(TMAOPS_SET_##kind(name))
#define TMAOPS_SET_f32(name) options.name = static_cast<float>(name);
#define TMAOPS_SET_f64(name) options.name = name;
#define TMAOPS_SET_i32(name) options.name = static_cast<int32_t>(name);
#define TMAOPS_SET_flag(name) options.name = name;
#define TMAOPS_SET_word(name) options.name = number_of(name, {TMAOPS_WORDS_##name(TMAOPS_TEXT)}, #name);
#define TMAOPS_SET_time(name) options.name = time_of(name, source_times);
#define TMAOPS_SET_tensor(name)         \
  const OptionalView name##_view(name); \
  options.name = name##_view.pointer;
#define TMAOPS_SET_i64_list(name) options.name = name ? name->data() : nullptr;
#define TMAOPS_SET_i32_list(name)                                                                              \
  const auto name##_narrow = name ? std::vector<int32_t>(name->begin(), name->end()) : std::vector<int32_t>(); \
  options.name = name ? name##_narrow.data() : nullptr;

tmaops_time time_of(std::optional<double> given, const Tensor& times) {
  if (!given) return {};
  return times.scalar_type() == ScalarType::Long ? tmaops_time{0, std::llround(*given)} : tmaops_time{*given, 0};
}

// --- multi-scale deformable attention --------------------------------------------------------------------------------

static_assert(sizeof(tmaops_level_shape) == 2 * sizeof(int64_t));
const tmaops_level_shape* shapes_in(const Integers& levels) {
  if (levels.size() % 2 != 0) fail("levels: an odd number of sides");
  return reinterpret_cast<const tmaops_level_shape*>(levels.data());
}

/// Lists with one number for each level; a tensor of levels counts instead of the list of them.
void check_lists(const Integers& levels, const std::optional<Tensor>& spatial_shapes,
                 const std::optional<Integers>& level_start_index, const std::optional<Integers>& points_per_level) {
  const auto count = static_cast<int64_t>(levels.size() / 2);
  const int64_t there = spatial_shapes ? spatial_shapes->dim() > 0 ? spatial_shapes->size(0) : 0 : count;
  if (level_start_index && static_cast<int64_t>(level_start_index->size()) != count)
    fail("level_start_index: not one number for each level");
  if (points_per_level && static_cast<int64_t>(points_per_level->size()) != there)
    fail("points_per_level: not one number for each level");
}

Tensor ms_deform_attn(const Tensor& value, const Integers& levels, const Tensor& sampling_locations,
                      const Tensor& attention_weights TMAOPS_MS_DEFORM_ATTN_OPTION_LIST(TMAOPS_FORWARD),
                      std::optional<ScalarType> out_dtype) {
  TMAOPS_FUNCTION(ms_deform_attn);
  tmaops_ms_deform_attn_options options = TMAOPS_MS_DEFORM_ATTN_OPTIONS;
  TMAOPS_MS_DEFORM_ATTN_OPTION_LIST(TMAOPS_SET_FORWARD)
  check_lists(levels, spatial_shapes, level_start_index, points_per_level);
  const bool ranks = value.dim() == 4 && sampling_locations.dim() > 1;  // else the library says what is wrong
  int64_t shape[3] = {};
  if (ranks) shape[0] = value.size(0), shape[1] = sampling_locations.size(1), shape[2] = value.size(2) * value.size(3);
  const Tensor output = empty(value, std::span(shape, ranks ? 3 : 0), out_dtype);
  const tmaops_tensor values = view(value), locations = view(sampling_locations), weights = view(attention_weights),
                      result = view(output);
  check(ms_deform_attn(&values, shapes_in(levels), static_cast<int64_t>(levels.size() / 2), &locations, &weights,
                       &result, &options, stream_of(value)));
  return output;
}

std::tuple<Tensor, Tensor, Tensor> ms_deform_attn_backward(
    const Tensor& grad_output, const Tensor& value, const Integers& levels, const Tensor& sampling_locations,
    const Tensor& attention_weights, int64_t needed TMAOPS_MS_DEFORM_ATTN_OPTION_LIST(TMAOPS_BACKWARD)) {
  TMAOPS_FUNCTION(ms_deform_attn_backward);
  tmaops_ms_deform_attn_options options = TMAOPS_MS_DEFORM_ATTN_OPTIONS;
  TMAOPS_MS_DEFORM_ATTN_OPTION_LIST(TMAOPS_SET_BACKWARD)
  check_lists(levels, spatial_shapes, level_start_index, points_per_level);
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
  check(ms_deform_attn_backward(&values, shapes_in(levels), static_cast<int64_t>(levels.size() / 2), &locations,
                                &weights, &grad, &gradients, &options, stream_of(value)));
  return {grad_value, grad_locations, grad_weights};
}

// --- resampling ------------------------------------------------------------------------------------------------------

int64_t last_extent(const Tensor& tensor) { return tensor.dim() == 0 ? 0 : tensor.size(tensor.dim() - 1); }
int64_t first_extent(const Tensor& tensor) { return tensor.dim() == 0 ? 0 : tensor.size(0); }

void set_counts(tmaops_resample_options& options, const std::optional<Integers>& source_offsets,
                const std::optional<Integers>& target_offsets) {
  if (source_offsets) options.source_offset_count = static_cast<int64_t>(source_offsets->size());
  if (target_offsets) options.target_offset_count = static_cast<int64_t>(target_offsets->size());
}

Tensor resample(const Tensor& values, const Tensor& source_times,
                const Tensor& target_times TMAOPS_RESAMPLE_OPTION_LIST(TMAOPS_FORWARD)) {
  TMAOPS_FUNCTION(resample);
  tmaops_resample_options options = TMAOPS_RESAMPLE_OPTIONS;
  TMAOPS_RESAMPLE_OPTION_LIST(TMAOPS_SET_FORWARD)
  set_counts(options, source_offsets, target_offsets);
  Integers shape{last_extent(target_times), last_extent(values)};
  if (!target_offsets && !target_offset_tensor) {
    const int64_t batch = source_offset_tensor ? first_extent(*source_offset_tensor) - 1
                          : source_offsets     ? static_cast<int64_t>(source_offsets->size()) - 1
                                               : first_extent(values);
    shape.insert(shape.begin(), std::max<int64_t>(batch, 0));
  }
  const Tensor output = empty(values, shape);
  const tmaops_tensor source = view(values), times = view(source_times), targets = view(target_times),
                      result = view(output);
  check(resample(&source, &times, &targets, nullptr, &result, &options, stream_of(values)));
  return output;
}

Tensor resample_backward(const Tensor& grad_output, const Tensor& source_times, const Tensor& target_times,
                         int64_t samples TMAOPS_RESAMPLE_OPTION_LIST(TMAOPS_BACKWARD)) {
  TMAOPS_FUNCTION(resample_backward);
  tmaops_resample_options options = TMAOPS_RESAMPLE_OPTIONS;
  TMAOPS_RESAMPLE_OPTION_LIST(TMAOPS_SET_BACKWARD)
  set_counts(options, source_offsets, target_offsets);
  Integers shape{samples, last_extent(grad_output)};
  if (!source_offsets && !source_offset_tensor) shape.insert(shape.begin(), first_extent(grad_output));
  const Tensor gradient = empty(grad_output, shape);
  const tmaops_tensor grad = view(grad_output), times = view(source_times), targets = view(target_times),
                      result = view(gradient);
  check(resample_backward(&times, &targets, nullptr, &grad, &result, &options, stream_of(grad_output)));
  return gradient;
}

// --- matrix multiplication -------------------------------------------------------------------------------------------

Tensor gemm(const Tensor& a, const Tensor& b TMAOPS_GEMM_OPTION_LIST(TMAOPS_FORWARD),
            std::optional<ScalarType> out_dtype) {
  TMAOPS_FUNCTION(gemm);
  Integers shape(a.sizes().begin(), a.sizes().end());
  if (!shape.empty()) shape.back() = last_extent(b);
  if (b.dim() == 3 && a.dim() == 2) shape.insert(shape.begin(), b.size(0));
  const Tensor output = empty(a, shape, out_dtype);
  tmaops_gemm_options options = TMAOPS_GEMM_OPTIONS;
  TMAOPS_GEMM_OPTION_LIST(TMAOPS_SET_FORWARD)
  const tmaops_tensor left = view(a), right = view(b), result = view(output);
  check(gemm(&left, &right, &result, &options, stream_of(a)));
  return output;
}

}  // namespace

// For CPU and CUDA alike. The operators named ..._kernel are those that compiled graphs hold.
#define TMAOPS_IMPLEMENT(name)           \
  library.impl(#name, TORCH_BOX(&name)); \
  library.impl(#name "_kernel", TORCH_BOX(&name))
#define TMAOPS_IMPLEMENT_ALL()               \
  TMAOPS_IMPLEMENT(ms_deform_attn);          \
  TMAOPS_IMPLEMENT(ms_deform_attn_backward); \
  TMAOPS_IMPLEMENT(resample);                \
  TMAOPS_IMPLEMENT(resample_backward);       \
  TMAOPS_IMPLEMENT(gemm)

STABLE_TORCH_LIBRARY_IMPL(tmaops, CPU, library) { TMAOPS_IMPLEMENT_ALL(); }
STABLE_TORCH_LIBRARY_IMPL(tmaops, CUDA, library) { TMAOPS_IMPLEMENT_ALL(); }
