#include "tmaops/error.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

namespace tmaops {
namespace {

TEST(ErrorCatalogue, is_ordered_complete_and_has_known_exit_codes) {
  std::string_view previous;
  std::set<std::string_view> names;
  for (const ErrorPage& page : error_catalogue()) {
    EXPECT_LT(previous, page.number);
    previous = page.number;
    EXPECT_TRUE(names.insert(page.name).second) << page.name;
    EXPECT_EQ(page.number.size(), 4U);
    EXPECT_FALSE(page.title.empty() || page.explanation.empty() || page.mend.empty()) << page.number;
    EXPECT_TRUE((std::set{1, 2, 3, 4, 5, 130}).contains(page.exit_code)) << page.number;
    EXPECT_EQ(&error_page(page.code), &page);
  }
}

TEST(Error, message_has_all_its_parts) {
  const Error error(ErrorCode::dtype_mismatch, {.where = "gemm: b", .got = "bf16", .needed = "f16, as a"});
  const std::string message = error.what();
  for (const char* piece : {"E012", "gemm: b", "bf16", "f16, as a"})
    EXPECT_NE(message.find(piece), std::string::npos) << piece;
  EXPECT_EQ(error.exit_code(), 2);
}

TEST(Catalogue, no_mend_only_points_to_the_message) {
  const std::regex pointer(R"((See the \w+ in the message|The message (has|lists)[^;]*)\.)");
  for (const ErrorPage& page : error_catalogue())
    EXPECT_FALSE(std::regex_match(std::string(page.mend), pointer)) << page.number << ": " << page.mend;
}

}  // namespace
}  // namespace tmaops
