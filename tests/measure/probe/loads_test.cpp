// The comparison of loads with simulated hardware: the model itself, and a model that is wrong in one byte.
#include "probe/loads.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tma/tile.hpp"

namespace tmaops::probe {
namespace {

class ModelLoader : public Loader {
 public:
  explicit ModelLoader(bool wrong) : wrong_(wrong) {}
  std::uint64_t memory(const std::vector<std::byte>& memory) override {
    memory_ = memory;
    return kBase;
  }
  std::vector<std::byte> window(const tma::TensorMapSpec& spec, const tma::TileLoad& load) override {
    std::vector<std::byte> window(static_cast<std::size_t>(kLoadWindowBytes), kLoadPoison);
    tma::load_tile(spec, load, std::span(memory_).subspan(spec.address - kBase),
                   std::span(window).subspan(load.shared_address));
    if (wrong_) window.back() = std::byte{0};
    return window;
  }

 private:
  static constexpr std::uint64_t kBase = 1U << 20;
  bool wrong_;
  std::vector<std::byte> memory_{};
};

TEST(ProbeLoads, the_model_agrees_with_itself_and_everything_is_covered) {
  ModelLoader loader(false);
  const LoadRun run = run_loads(1, 1500, loader, {});
  EXPECT_EQ(run.count, 1500U);
  EXPECT_EQ(run.exact, 1500U);
  std::vector<std::string> wanted{"fill zero",       "fill nan",       "element strides", "negative coordinates",
                                  "across a border", "wholly outside", "wholly inside",   "destination out of phase",
                                  "swizzle none",    "swizzle 32B",    "swizzle 64B",     "swizzle 128B"};
  for (int rank = 1; rank <= 5; ++rank) wanted.push_back("rank " + std::to_string(rank));
  for (int type = 0; type <= static_cast<int>(tma::ElementType::tf32_ftz); ++type)
    wanted.push_back("type " + std::string(tma::to_string(static_cast<tma::ElementType>(type))));
  for (const std::string& what : wanted) {
    ASSERT_TRUE(run.covered.contains(what)) << what;
    EXPECT_GE(run.covered.at(what), 30U) << what;
  }
}

TEST(ProbeLoads, a_wrong_byte_is_found_with_its_place) {
  ModelLoader loader(true);
  const LoadRun run = run_loads(2, 30, loader, {});
  EXPECT_EQ(run.exact, 0U);
  ASSERT_EQ(run.mismatches.size(), LoadRun::kMostShown);
  EXPECT_EQ(run.mismatches.front().first_byte, kLoadWindowBytes - 1);
  EXPECT_EQ(run.mismatches.front().got, 0);
  EXPECT_EQ(run.mismatches.front().want, 0xCC);
}

TEST(RandomLoads, the_same_seed_gives_the_same_sequence) {
  RandomLoads a(5, kLoadMemoryBytes, kLoadWindowBytes), b(5, kLoadMemoryBytes, kLoadWindowBytes);
  for (int i = 0; i < 100; ++i) {
    const RandomLoad one = a.next(), other = b.next();
    EXPECT_EQ(one.spec, other.spec);
    EXPECT_EQ(one.load.coordinates, other.load.coordinates);
    EXPECT_LE(static_cast<std::int64_t>(one.spec.address) + tensor_bytes(one.spec), kLoadMemoryBytes);
  }
}

}  // namespace
}  // namespace tmaops::probe
