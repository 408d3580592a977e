#include <stdio.h>
#include <tmaops/tmaops.h>

int main(void) {
  float positions[] = {0.0F, 1.0F, 4.0F};       // three samples of one channel
  double timestamps[] = {10.00, 10.10, 10.40};  // in seconds, irregular
  double targets[] = {10.05, 10.25};
  float aligned[2];
  const int64_t samples[] = {1, 3, 1}, wanted[] = {1, 2, 1};  // trajectories, samples, channels
  const tmaops_tensor values = {positions, {tmaops_device_cpu, 0}, 3, TMAOPS_F32, samples, NULL, 0};
  const tmaops_tensor source_times = {timestamps, {tmaops_device_cpu, 0}, 2, TMAOPS_F64, samples, NULL, 0};
  const tmaops_tensor target_times = {targets, {tmaops_device_cpu, 0}, 2, TMAOPS_F64, wanted, NULL, 0};
  const tmaops_tensor output = {aligned, {tmaops_device_cpu, 0}, 3, TMAOPS_F32, wanted, NULL, 0};

  if (tmaops_resample(&values, &source_times, &target_times, NULL, &output, NULL, NULL) != tmaops_done) {
    fprintf(stderr, "%s\n", tmaops_last_error()->message);
    return 1;
  }
  printf("%.2f %.2f\n", aligned[0], aligned[1]);  // 0.50 2.50
  return 0;
}
