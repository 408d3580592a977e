// What it takes, and its tiles.
#include <algorithm>

#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_unrolled_k {
namespace {

/// Whether a plain product of that K is cut into whole tiles of 64 x columns, in fours of rows with K = 512, and its
/// strides fit 32 bits. `problem` in the form in which D is row-major.
bool cuts_whole(const Problem& problem, int columns, int k) {
  const auto fits = [](const MatrixLayout& layout) {
    return 2 * std::max(layout.rows, layout.columns) * layout.leading_dimension() <= INT32_MAX;
  };
  return has_whole_chunks(problem) && problem.k == k && problem.m % (k == 256 ? 64 : 256) == 0 &&
         problem.n % columns == 0 && fits(problem.a) && fits(problem.b) && fits(problem.d);
}

}  // namespace

std::vector<Config> configs(const Problem& problem, const DeviceInfo& device) {
  const Problem row_major = row_major_form(problem);
  const auto k = static_cast<int>(problem.k);
  std::vector<Config> made;
  const Config narrow{.rows = 64, .columns = 16};
  if (k == 256 && cuts_whole(row_major, 16, k) && is_one_wave(narrow, row_major, device)) made.push_back(narrow);
  if ((k == 256 || k == 512) && cuts_whole(row_major, 32, k)) made.push_back({.rows = 64, .columns = 32});
  return made;
}

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  if (Support support = supports_plain_rows(problem); !support) return support;
  if (!configs(problem, device).empty()) return Support::yes();
  return Support::no(
      "needs one batch, K of 256 or 512, D of the type of A, and M and N that are multiples of its tile: M of 64, with "
      "K of 512 of 256, and N of 32");
}

}  // namespace tmaops::ops::gemm::wgmma_unrolled_k
