// Memory of the tool on small files that claim much, in a child whose address space is limited.
#include <sys/resource.h>

#include "cli/resample_fixture.hpp"

namespace tmaops::test {
namespace {

using ResampleMemory = ResampleCommandTest;

// The libraries of the tool take a part of these bytes.
constexpr rlim_t kLimit = rlim_t{200} << 20;

/// Whether the limit can be set here at all: a sanitizer's shadow memory is larger.
bool can_limit() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

class LimitedMemory {
 public:
  LimitedMemory() {
    getrlimit(RLIMIT_AS, &before_);
    set(kLimit);
  }
  ~LimitedMemory() { set(before_.rlim_cur); }
  LimitedMemory(const LimitedMemory&) = delete;
  LimitedMemory& operator=(const LimitedMemory&) = delete;

 private:
  void set(rlim_t soft) const {
    const rlimit limit{soft, before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  rlimit before_{};
};

ToolResult run_limited(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "resample");
  const LimitedMemory limited;  // the child inherits it
  return run_tool(arguments, {{"TMAOPS_NUM_THREADS", "1"}});
}

std::string zeros_archive(int members, std::size_t bytes_each) {
  std::vector<ZipPart> parts{ZipPart::make("t.npy", npy("<f8", "(2,)", raw<double>({0, 1})), false)};
  const std::string zeros = npy("<f8", "(" + std::to_string(bytes_each / 8) + ",)", std::string(bytes_each, '\0'));
  for (int i = 0; i < members; ++i) parts.push_back(ZipPart::make("x" + std::to_string(i) + ".npy", zeros, true));
  return zip(parts);
}

TEST_F(ResampleMemory, one_long_field_costs_its_own_length) {
  if (!can_limit()) GTEST_SKIP() << "a sanitizer takes more";
  std::string text = "t,x,label\n0,0.5," + std::string(50'000, 'a') + "\n";
  for (int i = 1; i < 10'000; ++i) text += std::to_string(i) + ",1.5,b\n";
  const std::string in = file("a.csv", text);
  const ToolResult csv = run_limited({in, "-o", path("b.csv"), "--hz", "1"});
  EXPECT_EQ(csv.exit_code, 0) << csv.err;
  EXPECT_NE(read_all(path("b.csv")).find(std::string(50'000, 'a')), std::string::npos);
  const ToolResult npz = run_limited({in, "-o", path("b.npz"), "--hz", "1"});
  EXPECT_EQ(npz.exit_code, 2) << npz.err;
  expect_text(npz.err, error_page(ErrorCode::bad_parameter).number, "'label'", "--trust-sizes");
}

TEST_F(ResampleMemory, many_members_of_zeros_are_refused_together) {
  if (!can_limit()) GTEST_SKIP() << "a sanitizer takes more";
  const std::string in = file("a.npz", zeros_archive(20, 16'600'000));
  EXPECT_LT(std::filesystem::file_size(in), 400'000U);
  const ToolResult result = run_limited({in, "-o", path("b.npz"), "--hz", "1"});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  expect_text(result.err, error_page(ErrorCode::zip_bomb).number, "--trust-sizes");
}

TEST_F(ResampleMemory, compressed_text_is_bounded) {
  if (!can_limit()) GTEST_SKIP() << "a sanitizer takes more";
  const std::string line(1 << 20, '0');
  std::string deflate_of = "t,x\n0,";
  for (int i = 0; i < 100; ++i) deflate_of += line;
  const std::string raw_deflate = deflated(deflate_of);
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(deflate_of.data()), static_cast<uInt>(deflate_of.size()));
  const std::string in = file("a.csv.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + raw_deflate +
                                              little(crc, 4) + little(deflate_of.size(), 4));
  const ToolResult result = run_limited({in, "-o", path("b.csv"), "--hz", "1"});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  expect_text(result.err, error_page(ErrorCode::zip_bomb).number);
}

}  // namespace
}  // namespace tmaops::test
