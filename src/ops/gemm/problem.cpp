#include "ops/gemm/problem.hpp"

#include <array>
#include <bit>
#include <sstream>
#include <utility>

#include "core/checks.hpp"
#include "core/choice_cache.hpp"
#include "core/enum_name.hpp"

namespace tmaops {
namespace {

constexpr std::array<std::string_view, 4> kModes{"RC", "CR", "RR", "CC"};
constexpr std::string_view kActivations[] = {TMAOPS_WORDS_activation(TMAOPS_TEXT)};
constexpr std::string_view kAxes[] = {TMAOPS_WORDS_bias_axis(TMAOPS_TEXT)};

}  // namespace

std::string_view to_string(GemmMode mode) { return enum_name(kModes, mode); }
std::string_view to_string(Activation activation) { return enum_name(kActivations, activation); }
std::string_view to_string(BiasAxis axis) { return enum_name(kAxes, axis); }
std::optional<GemmMode> parse_gemm_mode(std::string_view name) { return parse_enum<GemmMode>(kModes, name); }
std::optional<Activation> parse_activation(std::string_view name) { return parse_enum<Activation>(kActivations, name); }
std::optional<BiasAxis> parse_bias_axis(std::string_view name) { return parse_enum<BiasAxis>(kAxes, name); }

namespace ops::gemm {
namespace {

constexpr int kMostAlignment = 128;  // bytes; nothing asks for more

int address_alignment(const void* data, std::int64_t batches, std::int64_t batch_stride, DType dtype) {
  auto bits = reinterpret_cast<std::uintptr_t>(data) | static_cast<std::uintptr_t>(kMostAlignment);
  if (batches > 1) bits |= static_cast<std::uintptr_t>(batch_stride) * size_of(dtype);
  return 1 << std::countr_zero(bits);
}

MatrixLayout matrix_layout(const ConstTensorView& tensor, std::int64_t batches) {
  const auto row = static_cast<std::size_t>(tensor.rank - 2);
  const std::size_t column = row + 1;
  MatrixLayout layout{.dtype = tensor.dtype,
                      .rows = tensor.shape[row],
                      .columns = tensor.shape[column],
                      .row_stride = tensor.strides[row],
                      .column_stride = tensor.strides[column],
                      .batch_stride = tensor.rank == 3 && batches > 1 ? tensor.strides[0] : 0};
  layout.order = order_of(layout.rows, layout.columns, layout.row_stride, layout.column_stride);
  layout.alignment = address_alignment(tensor.data, batches, layout.batch_stride, tensor.dtype);
  return layout;
}

/// (rows, columns) or (batch, rows, columns); `shared` allows two dimensions where d has three.
void check_shape(const ArgumentChecks& check, std::string_view argument, const ConstTensorView& tensor,
                 const TensorView& d, std::int64_t rows, std::int64_t columns, bool shared, std::string_view needed) {
  const std::string words(needed);
  if (shared) check.rank(argument, tensor, {2, d.rank}, words + (d.rank == 3 ? " or (batch, " + words.substr(1) : ""));
  if (tensor.rank == 2)
    check.shape(argument, tensor, {rows, columns}, words);
  else
    check.shape(argument, tensor, {d.shape[0], rows, columns}, "(batch, " + words.substr(1));
}

void check_tensor(const ArgumentChecks& check, std::string_view argument, const ConstTensorView& tensor,
                  const TensorView& d) {
  if (tensor.device.type == DeviceType::cuda && (argument == "a" || argument == "b"))
    check.dtype(argument, tensor, {DType::f16, DType::bf16});
  else
    check.dtype(argument, tensor, {DType::f16, DType::bf16, DType::f32});
  check.same_device(argument, tensor, "d", d);
}

bool same_elements(const ConstTensorView& c, const TensorView& d) {
  bool same = c.data == d.data && c.dtype == d.dtype && c.rank == d.rank;
  for (std::size_t i = 0; i < static_cast<std::size_t>(d.rank); ++i)
    same = same && c.shape[i] == d.shape[i] && (c.strides[i] == d.strides[i] || d.shape[i] == 1);
  return same;
}

MatrixLayout transposed(MatrixLayout layout) {
  std::swap(layout.rows, layout.columns);
  std::swap(layout.row_stride, layout.column_stride);
  layout.order = order_of(layout.rows, layout.columns, layout.row_stride, layout.column_stride);
  return layout;
}

void add_layout(std::ostringstream& text, std::string_view name, const MatrixLayout& layout) {
  const std::int64_t dense = layout.order == Order::column ? layout.rows : layout.columns;
  if (layout.order == Order::general)
    text << ", " << name << "_strides: [" << layout.row_stride << ", " << layout.column_stride << "]";
  else if (layout.leading_dimension() != dense)
    text << ", ld" << name << ": " << layout.leading_dimension();
}

}  // namespace

std::int64_t MatrixLayout::leading_dimension() const {
  if (order == Order::column) return columns > 1 ? column_stride : rows;
  return rows > 1 ? row_stride : columns;
}

Order order_of(std::int64_t rows, std::int64_t columns, std::int64_t row_stride, std::int64_t column_stride) {
  const bool row = column_stride == 1 || columns <= 1;
  const bool column = row_stride == 1 || rows <= 1;
  if (row && column) return columns <= 1 && rows > 1 ? Order::column : Order::row;
  if (row) return Order::row;
  return column ? Order::column : Order::general;
}

std::optional<GemmMode> Problem::mode() const {
  if (a.order == Order::general || b.order == Order::general) return std::nullopt;
  if (a.order == Order::row) return b.order == Order::row ? GemmMode::RR : GemmMode::RC;
  return b.order == Order::row ? GemmMode::CR : GemmMode::CC;
}

std::string Problem::text() const {
  std::ostringstream text;
  text << "gemm: {";
  if (const auto name = mode()) text << "mode: " << to_string(*name) << ", ";
  if (m == n && n == k)
    text << "size: " << m;
  else
    text << "m: " << m << ", n: " << n << ", k: " << k;
  if (batch != 1) text << ", batch: " << batch;
  text << ", dtype: " << to_string(a.dtype);
  if (d.dtype != a.dtype) text << ", out: " << to_string(d.dtype);
  add_layout(text, "a", a);
  add_layout(text, "b", b);
  if (d.order == Order::column) text << ", d: column";
  add_layout(text, "d", d);
  if (alpha != 1.0F) text << ", alpha: " << alpha;
  if (beta != 0.0F) text << ", beta: " << beta;
  if (c && !c_is_d) text << ", c: " << to_string(c->dtype);
  if (bias_dtype) text << ", bias: " << to_string(bias_axis);
  if (activation != Activation::none) text << ", activation: " << to_string(activation);
  text << "}";
  return text.str();
}

Problem make_problem(const ConstTensorView& a, const ConstTensorView& b, const TensorView& d,
                     const GemmOptions& options) {
  const ArgumentChecks check("gemm");
  check.enumerator("activation", options.activation, {TMAOPS_WORDS_activation(TMAOPS_TEXT)});
  check.enumerator("bias_axis", options.bias_axis, {TMAOPS_WORDS_bias_axis(TMAOPS_TEXT)});
  check.views({{"a", a}, {"b", b}, {"d", d}, {"c", options.c}, {"bias", options.bias}});

  check.rank("d", d, {2, 3}, "(M, N) or (batch, M, N)");
  const auto last = static_cast<std::size_t>(d.rank - 1);
  const std::int64_t m = d.shape[last - 1];
  const std::int64_t n = d.shape[last];
  check_shape(check, "a", a, d, m, -1, true, "(M, K)");
  const std::int64_t k = a.shape[static_cast<std::size_t>(a.rank - 1)];
  check_shape(check, "b", b, d, k, n, true, "(K, N)");

  check_tensor(check, "a", a, d);
  check_tensor(check, "b", b, d);
  check.same_dtype("b", b, "a", a);
  check_tensor(check, "d", d, d);
  check.memory("a", a);
  check.memory("b", b);
  check.writable("d", d);
  check.no_overlap("d", d, "a", a);
  check.no_overlap("d", d, "b", b);

  Problem problem{.m = m, .n = n, .k = k, .batch = d.rank == 3 ? d.shape[0] : 1};
  problem.device = d.device;
  problem.a = matrix_layout(a, problem.batch);
  problem.b = matrix_layout(b, problem.batch);
  problem.d = matrix_layout(d, problem.batch);
  problem.alpha = options.alpha;
  problem.beta = options.beta;
  problem.activation = options.activation;

  const ConstTensorView& c = options.c;
  if (!c.given() && options.beta != 0.0F) {
    std::ostringstream got;
    got << "nothing, with beta = " << options.beta;
    check.fail(ErrorCode::null_pointer, "c", got.str(), "a tensor of the shape of d, or beta = 0");
  }
  if (c.given()) {
    check_shape(check, "c", c, d, m, n, false, "(M, N)");
    check_tensor(check, "c", c, d);
    check.memory("c", c);
    problem.c_is_d = options.beta != 0.0F && same_elements(c, d);
    if (options.beta != 0.0F && !problem.c_is_d) check.no_overlap("d", d, "c", c);
    if (options.beta != 0.0F) problem.c = matrix_layout(c, problem.batch);
  }

  const ConstTensorView& bias = options.bias;
  problem.bias_axis = options.bias_axis;
  if (bias.given()) {
    if (options.bias_axis == BiasAxis::column)
      check.shape("bias", bias, {n}, "(N)");
    else
      check.shape("bias", bias, {m}, "(M)");
    check_tensor(check, "bias", bias, d);
    check.memory("bias", bias);
    check.no_overlap("d", d, "bias", bias);
    problem.bias_dtype = bias.dtype;
    problem.bias_stride = bias.strides[0];
  }
  return problem;
}

std::size_t hash_of(const Problem& problem) {
  return hash_numbers(problem.m, problem.n, problem.k, problem.batch, problem.a.dtype, problem.a.order,
                      problem.a.alignment, problem.b.order, problem.b.alignment, problem.d.dtype, problem.d.alignment,
                      problem.activation);
}

Problem transposed(const Problem& problem) {
  Problem made = problem;
  std::swap(made.m, made.n);
  made.a = transposed(problem.b);
  made.b = transposed(problem.a);
  made.d = transposed(problem.d);
  if (problem.c) made.c = transposed(*problem.c);
  made.bias_axis = problem.bias_axis == BiasAxis::column ? BiasAxis::row : BiasAxis::column;
  return made;
}

Problem row_major_form(const Problem& problem) {
  return problem.d.order == Order::column ? transposed(problem) : problem;
}

std::string Config::text() const {
  if (rows == 0) return {};
  std::string text = std::to_string(rows) + "x" + std::to_string(columns);
  if (cluster > 1) text += "c" + std::to_string(cluster);
  if (splits > 1) text += "k" + std::to_string(splits);
  if (parts > 1) text += "p" + std::to_string(parts);
  if (swapped) text += "t";
  return text;
}

}  // namespace ops::gemm
}  // namespace tmaops
