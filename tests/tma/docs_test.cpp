// docs/tma.md names every error of the catalogue about maps.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tmaops/error.hpp"

namespace tmaops::tma {
namespace {

TEST(TmaDocument, names_the_errors_about_maps) {
  std::ostringstream stream;
  stream << std::ifstream(TMAOPS_SOURCE_DIR "/docs/tma.md").rdbuf();
  const std::string text = stream.str();
  for (const ErrorPage& page : error_catalogue()) {
    if (page.number >= "E110" && page.number <= "E113") {
      EXPECT_NE(text.find(page.number), std::string::npos) << page.number;
    }
  }
}

}  // namespace
}  // namespace tmaops::tma
