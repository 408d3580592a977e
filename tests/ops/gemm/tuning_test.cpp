// The table of measured choices: its file, and when it decides.
#include "ops/gemm/tuning.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "support/expect_error.hpp"
#include "support/scratch.hpp"

namespace tmaops::ops::gemm {
namespace {

constexpr const char* kTable =
    "schema: 1\n"
    "choices:\n"
    "  - {gpu: NVIDIA H200, case: RC 4096, dtype: f16, variant: wgmma_specialized/128x128, us: 190.5}\n"
    "  - {gpu: NVIDIA H100, case: RC 4096, dtype: f16, variant: wgmma_tma/128x128, us: 230}\n"
    "\n"
    "  # two operators, one line each\n"
    "  - {gpu: NVIDIA H200, case: RC 64x4096x7168, dtype: bf16->f32, variant: wgmma_split_k/64x128, us: 17.5}\n";

/// Sets an environment variable while it lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) before_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

DeviceInfo h200() {
  DeviceInfo info;
  info.device = {DeviceType::cuda, 0};
  info.name = "NVIDIA H200";
  info.compute_capability = 90;
  info.multiprocessors = 132;
  info.shared_memory_per_block = 227 << 10;
  return info;
}

/// Mode RC, so that every matrix is contiguous along K or a row.
Problem product(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto rows = [](std::int64_t r, std::int64_t c) {
    return MatrixLayout{
        .dtype = DType::f16, .rows = r, .columns = c, .row_stride = c, .column_stride = 1, .alignment = 128};
  };
  Problem made{.m = m, .n = n, .k = k, .a = rows(m, k), .b = rows(k, n), .d = rows(m, n)};
  made.device = {DeviceType::cuda, 0};
  made.b.order = Order::column;
  made.b.row_stride = 1;
  made.b.column_stride = k;
  return made;
}

void expect_refused(const std::string& text, const std::string& place, const std::string& words) {
  SCOPED_TRACE(text);
  test::expect_error(ErrorCode::bad_tuning, [&] { (void)TuningTable::parse(text, "table.yaml"); }, place, words);
}

TEST(GemmTuning, a_table_is_read_and_written_back) {
  const TuningTable table = TuningTable::parse(kTable, "table.yaml");
  ASSERT_EQ(table.choices().size(), 3U);
  const TunedChoice* found = table.find("NVIDIA H200", "RC 64x4096x7168", "bf16->f32");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->choice, "wgmma_split_k/64x128");
  EXPECT_EQ(found->microseconds, 17.5);
  EXPECT_EQ(table.find("NVIDIA H200", "RC 64x4096x7168", "f16"), nullptr);
  EXPECT_EQ(TuningTable::parse(table.text(), "again").text(), table.text());
}

TEST(GemmTuning, a_new_measurement_replaces_the_old_one_of_that_gpu) {
  TuningTable table = TuningTable::parse(kTable, "table.yaml");
  table.set({"NVIDIA H200", "RC 4096", "f16", "wgmma_persistent/128x128", 180});
  EXPECT_EQ(table.choices().size(), 3U);
  EXPECT_EQ(table.find("NVIDIA H200", "RC 4096", "f16")->choice, "wgmma_persistent/128x128");
  EXPECT_EQ(table.find("NVIDIA H100", "RC 4096", "f16")->choice, "wgmma_tma/128x128");
}

TEST(GemmTuning, mistakes_are_named_with_their_line) {
  const std::string head = "schema: 1\nchoices:\n";
  expect_refused("", "table.yaml", "no table");
  expect_refused("schema: 2\n", "table.yaml:1", "schema: 1");
  expect_refused("schema: 1\nrows:\n", "table.yaml:2", "choices:");
  expect_refused(head + "  - RC 4096\n", "table.yaml:3", "- {gpu: ");
  const auto line = [&](const char* product, const char* types, const char* variant, const char* us) {
    return head + "  - {gpu: G, case: " + product + ", dtype: " + types + ", variant: " + variant + ", us: " + us +
           "}\n";
  };
  expect_refused(line("4096", "f16", "wgmma_tma/128x128", "1"), "table.yaml:3", "a mode and a size");
  expect_refused(line("RC 1", "f8", "wgmma_tma/128x128", "1"), "table.yaml:3", "f16 or bf16");
  expect_refused(line("RC 1x2", "f16", "wgmma_tma/128x128", "1"), "table.yaml:3", "a mode and a size");
  expect_refused(line("RC 1 batch=", "f16", "wgmma_tma/128x128", "1"), "table.yaml:3", "a mode and a size");
  expect_refused(line("RC 1", "f16", "wgmma_tma/128x128", "-1"), "table.yaml:3", "a time above 0");
  expect_refused(line("RC 1", "f16", "wgmma_tma/128x128", "1, us: 2"), "table.yaml:3", "us twice");
  expect_refused(head + "  - {gpu: G, case: RC 1}\n", "table.yaml:3", "no dtype");
  const std::string once = line("RC 1", "f16", "wgmma_tma/128x128", "1");
  expect_refused(once + once.substr(head.size()), "table.yaml:4", "a second time");
}

TEST(GemmTuning, the_option_goes_before_the_variable_and_that_before_the_cache) {
  const test::Scratch scratch;
  const Environment cache("XDG_CACHE_HOME", scratch.path().string());
  EXPECT_EQ(tuning_path("a.yaml"), "a.yaml");
  {
    const Environment variable("TMAOPS_GEMM_TUNING", "b.yaml");
    EXPECT_EQ(tuning_path(""), "b.yaml");
    EXPECT_EQ(tuning_path("a.yaml"), "a.yaml");
    EXPECT_EQ(tuning_path("off"), "");
  }
  const Environment variable("TMAOPS_GEMM_TUNING", "");
  EXPECT_EQ(tuning_path(""), (scratch.path() / "tmaops" / "gemm_tuning.yaml").string());
  EXPECT_EQ(tuning_table(""), nullptr) << "there is no file";
  const Environment off("TMAOPS_GEMM_TUNING", "off");
  EXPECT_EQ(tuning_path(""), "");
}

TEST(GemmTuning, a_file_that_was_named_must_be_there) {
  const test::Scratch scratch;
  const std::string path = (scratch / "none.yaml").string();
  test::expect_error(ErrorCode::cannot_read, [&] { (void)tuning_table(path); }, "none.yaml");
}

class GemmTuningChoice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!variants().front().built()) GTEST_SKIP() << variants().front().missing;
  }
};

TEST_F(GemmTuningChoice, what_was_measured_goes_before_the_model) {
  const test::Scratch scratch;
  const std::string path = scratch.file("choices.yaml", kTable).string();
  const Problem known = product(4096, 4096, 4096);
  const Choice choice = select(known, h200(), "", path);
  EXPECT_EQ(choice.variant->name, "wgmma_specialized");
  EXPECT_EQ(choice.config.text(), "128x128");
  EXPECT_NE(select(known, h200(), "", "off").variant->name, "wgmma_specialized");
  EXPECT_EQ(select(known, h200(), "wgmma_cp_async", path).variant->name, "wgmma_cp_async") << "a name goes first";
  DeviceInfo other = h200();
  other.name = "NVIDIA GH200";
  const Choice without = select(known, other, "", "off");
  EXPECT_NE(without.name(), choice.name()) << "else the next line shows nothing";
  EXPECT_EQ(select(known, other, "", path).name(), without.name()) << "another GPU";
  Problem shifted = known;
  shifted.a.alignment = 2;
  EXPECT_EQ(select(shifted, h200(), "", path).variant->name, "wgmma_cp_async") << "the measured one cannot run";
}

TEST_F(GemmTuningChoice, a_line_of_another_version_is_not_used) {
  const test::Scratch scratch;
  const Problem known = product(4096, 4096, 4096);
  int files = 0;  // a file is read once per process
  for (const char* gone : {"wgmma_gone/128x128", "wgmma_specialized/7x7", "wgmma_specialized", "blocked"}) {
    const std::string line = std::string("  - {gpu: NVIDIA H200, case: RC 4096, dtype: f16, variant: ") + gone;
    const std::string text = "schema: 1\nchoices:\n" + line + ", us: 1}\n";
    const std::string path = scratch.file(std::to_string(++files) + ".yaml", text).string();
    EXPECT_EQ(select(known, h200(), "", path).name(), select(known, h200(), "", "off").name()) << gone;
    EXPECT_EQ(TuningTable::read(path).text().substr(TuningTable{}.text().size()), line + ", us: 1}\n") << "kept";
  }
}

TEST_F(GemmTuningChoice, a_tile_can_be_named_with_its_variant) {
  const Problem known = product(4096, 4096, 4096);
  EXPECT_EQ(select(known, h200(), "wgmma_cp_async/64x128").config.columns, 128);
  for (const char* none : {"wgmma_cp_async/64x64k2", "wgmma_cp_async/7x7"})
    test::expect_error(
        ErrorCode::variant_refuses, [&] { (void)select(known, h200(), none); }, "one of the configurations 64x128");
}

std::vector<std::string> names_of(const Problem& problem) {
  std::vector<std::string> names;
  for (const Choice& choice : every_choice(problem, h200())) names.push_back(choice.name());
  return names;
}

TEST_F(GemmTuningChoice, every_candidate_can_be_named) {
  for (const Problem& one : {product(4096, 4096, 4096), product(64, 4096, 7168), product(1000, 1000, 1000)}) {
    const auto names = names_of(one);
    EXPECT_GE(names.size(), 8U);
    for (const std::string& name : names) EXPECT_EQ(select(one, h200(), name).name(), name);
  }
  Problem odd = product(64, 64, 63);
  EXPECT_EQ(names_of(odd), (std::vector<std::string>{"wgmma_cp_async/64x128", "mma_sync/128x128", "mma_sync/64x128"}));
}

}  // namespace
}  // namespace tmaops::ops::gemm
