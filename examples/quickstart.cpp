#include <cstdio>
#include <tmaops/tmaops.hpp>

int main() {
  const float positions[] = {0.0F, 1.0F, 4.0F};       // three samples of one channel
  const double timestamps[] = {10.00, 10.10, 10.40};  // in seconds, irregular
  const double targets[] = {10.05, 10.25};
  float aligned[2];
  tmaops::resample(tmaops::view(positions, {1, 3, 1}), tmaops::view(timestamps, {1, 3}), tmaops::view(targets, {1, 2}),
                   tmaops::view(aligned, {1, 2, 1}));
  std::printf("%.2f %.2f\n", aligned[0], aligned[1]);  // 0.50 2.50
}
