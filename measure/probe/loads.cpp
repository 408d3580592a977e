#include "probe/loads.hpp"

#include <algorithm>

#include "tma/rules.hpp"
#include "tma/sizes.hpp"
#include "tma/tile.hpp"

namespace tmaops::probe {
namespace {

std::vector<std::byte> random_memory(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> memory(static_cast<std::size_t>(kLoadMemoryBytes));
  for (std::byte& byte : memory) byte = static_cast<std::byte>(random() & 0xFFU);
  return memory;
}

void count_properties(const RandomLoad& one, LoadRun& run) {
  const tma::TensorMapSpec& spec = one.spec;
  const auto add = [&](const std::string& what) { ++run.covered[what]; };
  add("rank " + std::to_string(spec.rank()));
  add("type " + std::string(tma::to_string(spec.dtype)));
  add("swizzle " + std::string(tma::to_string(spec.swizzle)));
  add("fill " + std::string(tma::to_string(spec.fill)));
  if (std::ranges::any_of(spec.element_strides, [](std::int64_t step) { return step > 1; })) add("element strides");
  if (std::ranges::any_of(one.load.coordinates, [](std::int64_t at) { return at < 0; })) add("negative coordinates");
  if (one.load.shared_address % 1024 != 0) add("destination out of phase");
  bool across = false, outside = false;
  for (std::size_t d = 0; d < spec.dims.size(); ++d) {
    const std::int64_t first = one.load.coordinates[d], last = first + spec.box[d] - 1;
    outside = outside || last < 0 || first >= spec.dims[d];
    across = across || first < 0 || last >= spec.dims[d];
  }
  add(outside ? "wholly outside" : across ? "across a border" : "wholly inside");
}

using tma::TensorMapSpec;

}  // namespace

LoadRun run_loads(std::uint64_t seed, std::size_t count, Loader& loader, const Observer& observer) {
  LoadRun run;
  if (count == 0) return run;
  const std::vector<std::byte> memory = random_memory(seed);
  const std::uint64_t base = loader.memory(memory);
  RandomLoads random(seed, kLoadMemoryBytes, kLoadWindowBytes);
  std::vector<std::byte> want(static_cast<std::size_t>(kLoadWindowBytes));
  while (run.count < count && !observer.stop()) {
    if (run.count % 50 == 0) observer.progress(run.count, count, "loads against the model");
    const RandomLoad one = random.next();
    std::ranges::fill(want, kLoadPoison);
    tma::load_tile(one.spec, one.load, std::span(memory).subspan(one.spec.address),
                   std::span(want).subspan(one.load.shared_address));
    tma::TensorMapSpec real = one.spec;
    real.address += base;
    const std::vector<std::byte> got = loader.window(real, one.load);
    ++run.count;
    run.bytes += kLoadWindowBytes;
    count_properties(one, run);
    if (got == want) {
      ++run.exact;
    } else if (run.mismatches.size() < LoadRun::kMostShown) {
      const auto at = std::ranges::mismatch(got, want).in1 - got.begin();
      run.mismatches.push_back({one, at, std::to_integer<int>(got[static_cast<std::size_t>(at)]),
                                std::to_integer<int>(want[static_cast<std::size_t>(at)])});
    }
  }
  return run;
}

std::int64_t tensor_bytes(const TensorMapSpec& spec) {
  std::int64_t bytes = bytes_of(spec.dtype, spec.dims[0]);
  for (std::size_t i = 0; i < spec.strides.size(); ++i) bytes += (spec.dims[i + 1] - 1) * spec.strides[i];
  return bytes;
}

/// A coordinate for which the box lies in the tensor, across one of its ends, or wholly outside.
std::int64_t RandomLoads::coordinate(const TensorMapSpec& spec, std::size_t dimension) {
  const std::int64_t extent = spec.dims[dimension];
  const std::int64_t box = spec.box[dimension];
  const std::int64_t kind = below(8);
  std::int64_t at = kind < 3        ? below(extent)
                    : kind < 5      ? -below(box + 2)
                    : kind < 7      ? extent - below(box + 2)
                    : below(2) == 0 ? -box - below(1000)
                                    : extent + below(1000);
  if (dimension > 0) return at;
  const std::int64_t per_chunk = 128 / bits_of(spec.dtype);
  return at >= 0 ? at / per_chunk * per_chunk : -((-at + per_chunk - 1) / per_chunk * per_chunk);
}

RandomLoad RandomLoads::next() {
  for (;;) {
    RandomLoad made{.spec = specs_.ordinary(), .load = {}};
    if (made.spec.mode != tma::Mode::tiled || made.spec.interleave != tma::Interleave::none) continue;
    made.spec.address = static_cast<std::uint64_t>(16 * below(64));
    for (std::int64_t& stride : made.spec.strides)
      if (below(16) == 0) stride = below(2) == 0 ? 0 : 16;  // repeated or overlapping rows
    if (!keeps_rules(made.spec, tma::kHopper)) continue;    // too large a tile
    if (static_cast<std::int64_t>(made.spec.address) + tensor_bytes(made.spec) > memory_bytes_) continue;
    made.load.shared_address = static_cast<std::uint32_t>(128 * below(16));
    if (made.load.shared_address + tile_layout(made.spec).footprint > shared_bytes_) continue;
    for (std::size_t d = 0; d < made.spec.dims.size(); ++d) made.load.coordinates.push_back(coordinate(made.spec, d));
    return made;
  }
}

}  // namespace tmaops::probe
