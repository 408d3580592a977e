#include <gtest/gtest.h>

#include "io/npz.hpp"
#include "support/expect_error.hpp"
#include "support/npy_bytes.hpp"

namespace tmaops::io {
namespace {

TEST(WithoutLibzip, an_npz_input_is_refused_with_how_to_get_it) {
#ifdef TMAOPS_HAVE_LIBZIP
  GTEST_SKIP() << "built with libzip";
#else
  test::expect_error(
      ErrorCode::bad_format, [] { NpzReader(test::bytes_of(test::zip({})), "a.npz"); }, "without libzip",
      "build again");
#endif
}

}  // namespace
}  // namespace tmaops::io
