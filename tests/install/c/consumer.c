// Uses each operator once through the installed C header and library, and reads an error.
#include <stdio.h>
#include <string.h>
#include <tmaops/tmaops.h>

static tmaops_tensor tensor_of(void* data, tmaops_dtype dtype, int32_t ndim, const int64_t* shape) {
  tmaops_tensor tensor = {data, {tmaops_device_cpu, 0}, ndim, {0, 0, 0}, shape, NULL, 0};
  tensor.dtype = dtype;
  return tensor;
}

static const tmaops_dtype f32 = TMAOPS_F32, f64 = TMAOPS_F64, i64 = TMAOPS_I64;

static int done(int status, const char* what) {
  if (status != tmaops_done) printf("%s: %s\n", what, tmaops_last_error()->message);
  return status == tmaops_done;
}

static int multiplies(void) {
  float a_data[] = {1, 2, 3, 4}, b_data[] = {5, 6, 7, 8}, d_data[4] = {0}, bias_data[] = {-100, 0};
  const int64_t square[] = {2, 2}, two[] = {2}, one[] = {1, 4};
  const tmaops_tensor a = tensor_of(a_data, f32, 2, square), b = tensor_of(b_data, f32, 2, square);
  const tmaops_tensor d = tensor_of(d_data, f32, 2, square), bias = tensor_of(bias_data, f32, 1, two);
  const tmaops_tensor wrong = tensor_of(b_data, f32, 2, one);
  tmaops_gemm_options options = TMAOPS_GEMM_OPTIONS;
  tmaops_plan* plan = NULL;
  options.bias = &bias;
  options.activation = tmaops_activation_relu;
  if (!done(tmaops_gemm(&a, &b, &d, &options, NULL), "gemm") || d_data[0] != 0 || d_data[3] != 50) return 0;
  if (!done(tmaops_plan_gemm(&a, &b, &d, NULL, &plan), "plan of gemm")) return 0;
  if (!done(tmaops_plan_run(plan, NULL), "run of gemm") || d_data[0] != 19 || d_data[3] != 50) return 0;
  printf("%s %s\n", tmaops_plan_variant(plan), tmaops_plan_config(plan));
  tmaops_plan_destroy(plan);
  return tmaops_gemm(&a, &wrong, &d, NULL, NULL) == tmaops_error_shape_mismatch && tmaops_last_error()->code == 10 &&
         strcmp(tmaops_last_error()->where, "gemm: b") == 0 && strstr(tmaops_last_error()->message, "E010") != NULL;
}

static int samples(void) {
  float pixels[] = {1, 2, 3, 4}, middle[] = {0.5F, 0.5F}, weight[] = {2}, output_data = 0, grad_data[4] = {0}, one = 1;
  const int64_t value_shape[] = {1, 4, 1, 1}, location_shape[] = {1, 1, 1, 1, 1, 2}, output_shape[] = {1, 1, 1};
  const tmaops_level_shape level = {2, 2};
  const tmaops_tensor value = tensor_of(pixels, f32, 4, value_shape),
                      output = tensor_of(&output_data, f32, 3, output_shape);
  const tmaops_tensor locations = tensor_of(middle, f32, 6, location_shape);
  const tmaops_tensor weights = tensor_of(weight, f32, 5, location_shape),
                      grad_output = tensor_of(&one, f32, 3, output_shape);
  const tmaops_tensor grad_value = tensor_of(grad_data, f32, 4, value_shape);
  const tmaops_ms_deform_attn_gradients gradients = {&grad_value, NULL, NULL};
  tmaops_ms_deform_attn_options options = TMAOPS_MS_DEFORM_ATTN_OPTIONS;
  options.deterministic = 1;
  return done(tmaops_ms_deform_attn(&value, &level, 1, &locations, &weights, &output, NULL, NULL), "ms_deform_attn") &&
         output_data == 5 &&
         done(tmaops_ms_deform_attn_backward(&value, &level, 1, &locations, &weights, &grad_output, &gradients,
                                             &options, NULL),
              "ms_deform_attn_backward") &&
         grad_data[0] == 0.5F && grad_data[3] == 0.5F;
}

static int resamples(void) {
  double stamps[] = {0, 1, 3}, values_data[] = {0, 10, 30}, output_data[3] = {0}, grad_data[3] = {0};
  int64_t counts_data[tmaops_violation_count];
  const int64_t shape[] = {1, 3, 1}, counters[] = {tmaops_violation_count};
  const tmaops_tensor values = tensor_of(values_data, f64, 3, shape), times = tensor_of(stamps, f64, 2, shape);
  const tmaops_tensor output = tensor_of(output_data, f64, 3, shape), grad = tensor_of(grad_data, f64, 3, shape);
  const tmaops_tensor counts = tensor_of(counts_data, i64, 1, counters);
  const tmaops_uniform_grid grid = {{0.5, 0}, {1, 0}, 3};
  tmaops_resample_options options = TMAOPS_RESAMPLE_OPTIONS;
  options.outside = tmaops_outside_nan;
  return done(tmaops_resample(&values, &times, NULL, &grid, &output, &options, NULL), "resample") &&
         output_data[0] == 5 && output_data[1] == 15 && output_data[2] == 25 &&
         done(tmaops_resample_backward(&times, &times, NULL, &output, &grad, &options, NULL), "resample_backward") &&
         grad_data[1] == 15 &&
         done(tmaops_resample_violations(&times, NULL, &grid, &counts, &options, NULL), "resample_violations") &&
         counts_data[tmaops_violation_source_not_sorted] == 0;
}

int main(void) {
  int threads = 0;
  const char* op;
  int64_t i;
  if (!multiplies() || !samples() || !resamples()) return puts("wrong"), 1;
  if (!done(tmaops_num_threads(&threads), "threads") || threads < 1) return 1;
  for (i = 0; (op = tmaops_operator_at(i)) != NULL; ++i) printf("%s: first %s\n", op, tmaops_variant_at(op, 0)->name);
  printf("tmaops %s works\n", tmaops_version());
  return 0;
}
