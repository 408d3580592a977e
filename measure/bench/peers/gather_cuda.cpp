// The ceiling `gather`, and the check that its kernel reads what an attention has to read.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/peers/gather.hpp"
#include "bench/peers/peers.hpp"
#include "bench/workloads/element.hpp"
#include "bench/workloads/random.hpp"
#include "tmaops/error.hpp"

namespace tmaops::bench {
namespace {

constexpr std::int64_t kCheckedRows = 4096;
constexpr std::size_t kChunkBytes = 16;

GatherShape shape_of(const Workload& workload) {
  const TensorView value = workload.tensor("value", 0);
  const TensorView locations = workload.tensor("sampling_locations", 0);
  const nlohmann::json parameters = workload.peer_parameters();
  if (parameters["sampling"] != "bilinear") peer_refuses("gather", "bilinear sampling");
  if (parameters["fused"] != "none") peer_refuses("gather", "nothing fused in: it reads the locations as they are");
  if (!parameters["level_points"].empty()) peer_refuses("gather", "as many points in every level");
  const auto row_bytes = static_cast<std::size_t>(value.shape[3]) * size_of(value.dtype);
  if (row_bytes % kChunkBytes != 0) peer_refuses("gather", "rows of a multiple of 16 bytes");
  if (parameters["levels"].size() > kGatherMostLevels) peer_refuses("gather", "at most 8 levels");
  if (value.shape[1] * value.shape[2] * static_cast<std::int64_t>(row_bytes / kChunkBytes) >= std::int64_t{1} << 31)
    peer_refuses("gather", "images below 2^31 pieces of 16 bytes");
  GatherShape shape{.rows = value.shape[0] * locations.shape[1] * value.shape[2],
                    .rows_per_image = locations.shape[1] * value.shape[2],
                    .length = value.shape[1],
                    .heads = static_cast<std::int32_t>(value.shape[2]),
                    .chunks = static_cast<std::int32_t>(row_bytes / kChunkBytes),
                    .points = static_cast<std::int32_t>(locations.shape[4]),
                    .levels = static_cast<std::int32_t>(parameters["levels"].size())};
  std::int64_t start = 0;
  for (std::size_t i = 0; i < parameters["levels"].size(); ++i) {
    const std::int32_t height = parameters["levels"][i][0];
    const std::int32_t width = parameters["levels"][i][1];
    shape.level[i] = {height, width, start};
    start += std::int64_t{height} * width;
  }
  return shape;
}

std::int64_t corner(double location, std::int32_t extent) {
  const float pixels = std::fma(static_cast<float>(location), static_cast<float>(extent), -0.5F);
  return std::max<std::int64_t>(0, std::min<std::int64_t>(std::llround(std::floor(pixels)), extent - 2));
}

class Gather : public InProcess {
 public:
  Gather(const Workload& workload, Timer& timer)
      : InProcess("gather", Kind::ceiling, "", timer), shape_(shape_of(workload)) {
    for (int set = 0; set < workload.sets(); ++set)
      calls_.push_back([shape = shape_, value = workload.tensor("value", set).data,
                        locations = workload.tensor("sampling_locations", set),
                        output = workload.tensor("output", set).data](Stream stream) {
        launch_gather(shape, value, locations, output, stream);
      });
  }

  Comparison verify(Workload& workload, int set, double) override {
    workload.poison(set);
    timer_.run(calls_.at(static_cast<std::size_t>(set)));
    workload.fetch("output", set);
    const auto* got = static_cast<const std::byte*>(workload.host("output", set).data);
    const auto row_bytes = static_cast<std::size_t>(shape_.chunks) * kChunkBytes;
    Random random(set + 1);
    for (std::int64_t i = 0; i < std::min(kCheckedRows, shape_.rows); ++i) {
      const std::int64_t row = random.below(shape_.rows);
      const std::vector<std::byte> want = expected(workload, row, row_bytes);
      if (std::memcmp(got + static_cast<std::size_t>(row) * row_bytes, want.data(), row_bytes) != 0)
        return {.ok = false, .problem = "row " + std::to_string(row) + " differs"};
    }
    return {.ok = true};
  }

 private:
  std::vector<std::byte> expected(const Workload& workload, std::int64_t row, std::size_t row_bytes) const {
    const TensorView locations = workload.host("sampling_locations", 0);
    const auto* value = static_cast<const std::byte*>(workload.host("value", 0).data);
    const std::int64_t image = row / shape_.rows_per_image;
    const std::int64_t head = row % shape_.heads;
    std::vector<std::byte> sum(row_bytes);
    for (std::int32_t l = 0; l < shape_.levels; ++l) {
      const GatherLevel& level = shape_.level[static_cast<std::size_t>(l)];
      for (std::int32_t p = 0; p < shape_.points; ++p) {
        const std::int64_t at = 2 * ((row * shape_.levels + l) * shape_.points + p);
        const std::int64_t x = corner(load(locations.dtype, locations.data, at), level.width);
        const std::int64_t y = corner(load(locations.dtype, locations.data, at + 1), level.height);
        for (const std::int64_t dy : {0, level.height > 1 ? 1 : 0})
          for (const std::int64_t dx : {0, level.width > 1 ? 1 : 0}) {
            const std::int64_t pixel = level.start + (y + dy) * level.width + x + dx;
            const std::byte* from =
                value + static_cast<std::size_t>((image * shape_.length + pixel) * shape_.heads + head) * row_bytes;
            for (std::size_t i = 0; i < row_bytes; ++i) sum[i] ^= from[i];
          }
      }
    }
    return sum;
  }

  GatherShape shape_;
};

}  // namespace

std::unique_ptr<Implementation> make_cuda_gather(const Workload& workload, Timer& timer) {
  return std::make_unique<Gather>(workload, timer);
}

}  // namespace tmaops::bench
