// docs/tma.md holds the rule table of this build, every error of the catalogue about maps, and no example that is
// wrong.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tma/quirks.hpp"
#include "tma/rules_table.hpp"
#include "tmaops/error.hpp"

namespace tmaops::tma {
namespace {

std::string document() {
  std::ostringstream text;
  text << std::ifstream(TMAOPS_SOURCE_DIR "/docs/tma.md").rdbuf();
  return text.str();
}

TEST(TmaDocument, has_the_rule_table) {
  EXPECT_NE(document().find("\n" + rules_table() + "\n"), std::string::npos)
      << "the table in docs/tma.md differs from src/tma/rules.def; `tmaops tensormap --rules` prints it";
}

TEST(TmaDocument, has_the_quirk_table) {
  EXPECT_NE(document().find("\n" + quirks_table() + "\n"), std::string::npos)
      << "the table in docs/tma.md differs from src/tma/quirks.def; it should be\n"
      << quirks_table();
}

TEST(TmaDocument, names_the_errors_about_maps) {
  const std::string text = document();
  for (const ErrorPage& page : error_catalogue()) {
    if (page.number >= "E110" && page.number <= "E113") {
      EXPECT_NE(text.find(page.number), std::string::npos) << page.number;
    }
  }
}

}  // namespace
}  // namespace tmaops::tma
