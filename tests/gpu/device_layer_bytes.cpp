// Holds each test of the suites in device_layer_bytes.tsv to the digest there. "-": its bytes are times, or name the
// thread that elect_one() chooses, which PTX leaves open.
#include "gpu/device_layer_bytes.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace tmaops::test {
namespace {

class HoldsToDigests : public testing::EmptyTestEventListener {
 public:
  HoldsToDigests() {
    std::ifstream file(TMAOPS_SOURCE_DIR "/tests/gpu/device_layer_bytes.tsv");
    for (std::string test, digest; file >> test >> digest;) {
      wanted_[test] = digest;
      suites_.insert(test.substr(0, test.find('.')));
    }
  }
  void OnTestStart(const testing::TestInfo&) override { bytes_digest = kStart; }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (bytes_digest == kStart || test.result()->Failed()) return;
    if (!suites_.contains(test.test_suite_name())) return;
    const auto row = wanted_.find(std::string(test.test_suite_name()) + "." + test.name());
    std::ostringstream digest;
    digest << std::hex << bytes_digest;
    EXPECT_NE(row, wanted_.end()) << "device_layer_bytes.tsv has no row for it; the digest is " << digest.str();
    if (row == wanted_.end() || row->second == "-") return;
    EXPECT_EQ(digest.str(), row->second) << "the bytes are not those of device_layer_bytes.tsv";
  }

 private:
  static constexpr std::uint64_t kStart = 0xcbf29ce484222325ull;
  std::map<std::string, std::string> wanted_;
  std::set<std::string> suites_;
};

[[maybe_unused]] const bool listens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new HoldsToDigests);
  return true;
}();

}  // namespace
}  // namespace tmaops::test
