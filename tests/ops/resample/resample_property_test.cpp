// Every variant of the registry against the reference, over random problems of every kind.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "ops/resample/options.hpp"
#include "ops/resample/resample_cases.hpp"
#include "tmaops/error.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::test {
namespace {

template <class T>
T element(std::initializer_list<T> all) {
  return *rc::gen::elementOf(std::vector<T>(all));
}
bool flag(int one_in) { return *rc::gen::inRange(0, one_in) == 0; }

CaseShape random_shape() {
  CaseShape s;
  s.batch = *rc::gen::inRange(1, 5);
  s.source = element<std::int64_t>({1, 2, 3, 5, 17, 40, 300});
  s.target = element<std::int64_t>({1, 2, 15, 16, 17, 33, 260, 700});
  s.channels = element<std::int64_t>({1, 2, 3, 4, 5, 7, 8, 14, 16, 30, 71});
  s.values = element({DType::f32, DType::f32, DType::f64, DType::f16, DType::bf16});
  s.times = element({DType::f32, DType::f64, DType::i64});
  s.groups.clear();
  const int groups = *rc::gen::inRange(1, 4);
  for (int i = 0; i < groups; ++i)
    s.groups.push_back(element({Interpolation::linear, Interpolation::previous, Interpolation::next,
                                Interpolation::nearest, Interpolation::cubic, Interpolation::slerp, Interpolation::mean,
                                Interpolation::sum, Interpolation::min, Interpolation::max, Interpolation::any,
                                Interpolation::count, Interpolation::lowpass}));
  s.outside = element({Outside::hold, Outside::nan, Outside::extrapolate, Outside::error});
  s.duplicates = element({Duplicates::error, Duplicates::last});
  s.gap = flag(3);
  s.valid = flag(2);
  s.ragged_source = flag(3);
  s.ragged_target = flag(3);
  s.shared_source = !s.ragged_source && flag(4);
  s.grid = !s.ragged_target && s.outside != Outside::error && flag(4);
  s.shared_target = !s.ragged_target && !s.grid && s.outside != Outside::error && flag(4);
  if (runs_far_outside(s))  // hundreds of intervals away, a cubic has no digits left
    std::replace(s.groups.begin(), s.groups.end(), Interpolation::cubic, Interpolation::linear);
  s.sorted = !flag(3);
  s.strided = flag(4);
  s.strided_channels = flag(6);
  s.strided_times = flag(6);
  s.nan_values = flag(3);
  s.seed = *rc::gen::arbitrary<std::uint64_t>();
  return s;
}

void check(const CaseShape& shape, const std::string& variant, const Buffer& got, const Buffer& want,
           Tolerance tolerance) {
  const std::string difference = difference_of(got, want, tolerance);
  if (!difference.empty()) RC_FAIL(variant + ": " + difference + "\nin " + text_of(shape));
}

/// Runs fn; the number of the error, or nothing.
template <class Fn>
std::string error_of(const Fn& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return std::string(error.number()) + error.details().got;
  }
  return "";
}

/// Random shapes per case of rapidcheck, which makes 100.
constexpr int kShapes = 20;

void agrees(const CaseShape& shape) {
  const ResampleCase c(shape);
  Buffer want = c.output();
  Buffer want_valid = c.valid();
  // Some random cases are errors (all timestamps equal): then every variant must report the same one.
  const std::string want_error = error_of([&] { c.run("reference", want, shape.valid ? &want_valid : nullptr); });
  const Tolerance tolerance = tolerance_of(shape);
  for (const std::string& variant : cpu_variants("resample")) {
    if (variant == "reference") continue;
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      Buffer got = c.output();
      Buffer got_valid = c.valid();
      const std::string error = error_of([&] { c.run(variant, got, shape.valid ? &got_valid : nullptr); });
      if (error.substr(0, 4) == "E025") continue;  // refuses
      RC_ASSERT(error == want_error);
      if (!error.empty()) continue;
      check(shape, variant, got, want, tolerance);
      if (shape.valid) check(shape, variant + ", valid", got_valid, want_valid, {0, 0});
    }
    set_num_threads(0);
  }
}

RC_GTEST_PROP(Resample, every_variant_agrees_with_the_reference, ()) {
  for (int i = 0; i < kShapes; ++i) agrees(random_shape());
}

void steps_are_exact(CaseShape shape) {
  for (Interpolation& mode : shape.groups)
    if (mode == Interpolation::linear || mode == Interpolation::cubic || mode == Interpolation::slerp ||
        mode == Interpolation::mean || mode == Interpolation::sum || mode == Interpolation::lowpass)
      mode = element({Interpolation::previous, Interpolation::next, Interpolation::nearest});
  const ResampleCase c(shape);
  Buffer want = c.output();
  if (!error_of([&] { c.run("reference", want, nullptr); }).empty()) return;
  for (const std::string& variant : cpu_variants("resample")) {
    Buffer got = c.output();
    if (!error_of([&] { c.run(variant, got, nullptr); }).empty()) continue;
    check(shape, variant, got, want, {0, 0});
  }
}

RC_GTEST_PROP(Resample, step_modes_are_exact, ()) {
  for (int i = 0; i < kShapes; ++i) steps_are_exact(random_shape());
}

void same_bits_for_threads(const CaseShape& shape) {
  const ResampleCase c(shape);
  for (const std::string& variant : cpu_variants("resample")) {
    set_num_threads(1);
    Buffer one = c.output();
    if (!error_of([&] { c.run(variant, one, nullptr); }).empty()) continue;
    set_num_threads(4);
    Buffer four = c.output();
    c.run(variant, four, nullptr);
    RC_ASSERT(one.bits() == four.bits());
  }
  set_num_threads(0);
}

RC_GTEST_PROP(Resample, the_same_bits_for_any_number_of_threads, ()) {
  for (int i = 0; i < kShapes; ++i) same_bits_for_threads(random_shape());
}

CaseShape random_backward_shape() {
  CaseShape shape = random_shape();
  for (Interpolation& mode : shape.groups)
    if (!ops::resample::has_gradient(mode)) mode = Interpolation::linear;
  shape.nan_values = false;
  shape.valid = false;
  return shape;
}

void backward_agrees(const CaseShape& shape) {
  ResampleCase c(shape);
  const DType gradient = shape.values == DType::f64 || flag(2) ? shape.values : DType::f32;
  Buffer grad_output = c.output(gradient);
  grad_output.fill_normal(c.random());
  Buffer want = c.gradients(shape.values);
  const std::string want_error = error_of([&] { c.run_backward("reference_backward", grad_output, want); });
  Tolerance tolerance = tolerance_of(shape);
  // Sums of up to 700 targets, which may all fall on one sample: partial sums up to 64, so 700 roundings of up to
  // 2^-19, whose sum has a standard deviation of 3e-5; five of them. Far outside, all targets have large weights on the
  // same two samples: a few units of 2^-24 times 700 targets times 350 intervals on average.
  tolerance.absolute *= runs_far_outside(shape) ? 100 : 80;
  for (const std::string& variant : cpu_variants("resample_backward")) {
    if (variant == "reference_backward") continue;
    std::vector<unsigned char> bits;
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      Buffer got = c.gradients(shape.values);
      const std::string error = error_of([&] { c.run_backward(variant, grad_output, got); });
      if (error.substr(0, 4) == "E025") continue;
      RC_ASSERT(error == want_error);
      if (!error.empty()) continue;
      check(shape, variant, got, want, tolerance);
      RC_ASSERT(threads == 1 || bits == got.bits());
      bits = got.bits();
    }
    set_num_threads(0);
  }
}

RC_GTEST_PROP(ResampleBackward, every_variant_agrees_with_the_reference, ()) {
  for (int i = 0; i < kShapes; ++i) backward_agrees(random_backward_shape());
}

/// <y, R x> = <R^T y, x>: the backward pass of a variant is the transpose of its own forward pass.
void is_the_transpose(CaseShape shape) {
  shape.values = DType::f64;
  if (shape.outside == Outside::nan) shape.outside = Outside::hold;
  shape.gap = false;
  ResampleCase c(shape);
  Buffer output = c.output();
  if (!error_of([&] { c.run("reference", output, nullptr); }).empty()) return;
  Buffer y = c.output();
  y.fill_normal(c.random());
  for (const std::string& variant : cpu_variants("resample")) {
    Buffer forward = c.output();
    Buffer backward = c.gradients(DType::f64);
    if (!error_of([&] { c.run(variant, forward, nullptr); }).empty()) continue;
    c.run_backward(variant + "_backward", y, backward);
    double left = 0;
    double right = 0;
    double scale = 1;
    for (std::int64_t i = 0; i < y.layout().size(); ++i) {
      left += y.get(i) * forward.get(i);
      scale += std::abs(y.get(i) * forward.get(i));
    }
    for (std::int64_t i = 0; i < backward.layout().size(); ++i) right += backward.get(i) * c.values().get(i);
    RC_ASSERT(std::abs(left - right) <= 1e-11 * scale);
  }
}

RC_GTEST_PROP(ResampleBackward, is_the_transpose_of_forward, ()) {
  for (int i = 0; i < kShapes; ++i) is_the_transpose(random_backward_shape());
}

}  // namespace
}  // namespace tmaops::test
