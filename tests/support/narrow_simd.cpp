// Holds the variants with Highway's vectors to fewer instructions than the processor has, before main(): with
// TMAOPS_TEST_SIMD=sse4 to SSE4, with =baseline to what every processor has. Linked into the tests of these variants.
#include <hwy/targets.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

const bool kHeld = [] {
  const char* wish = std::getenv("TMAOPS_TEST_SIMD");
  if (wish == nullptr) return false;
  const std::string_view name(wish);
  // x86: the better the target, the lower its bit.
  if (name == "sse4") {
    hwy::DisableTargets(HWY_SSE4 - 1);
  } else if (name == "baseline") {
    hwy::DisableTargets(2 * HWY_SSE4 - 1);
  } else {
    std::fprintf(stderr, "TMAOPS_TEST_SIMD: sse4 or baseline, not '%s'\n", wish);
    std::abort();
  }
  return true;
}();

}  // namespace
