// wgmma, mma.sync, ldmatrix and stmatrix (PTX ISA "wgmma.mma_async", "mma", "ldmatrix", "stmatrix"). Sums are f32, in
// the order of k.
#include <cuda_fp16.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "executor/state.hpp"
#include "tmaops/tensor_map.hpp"

namespace tmaops::executor {
namespace {

constexpr int kRows = 16;   // of A that one warp of the warpgroup multiplies
constexpr int kDepth = 16;  // of one instruction

/// Every f16 by its bits: their conversion on a CPU takes most of the time of a product.
std::vector<float> widened_halves() {
  std::vector<float> all(1 << 16);
  for (std::size_t bits = 0; bits < all.size(); ++bits) {
    const __half_raw raw{static_cast<std::uint16_t>(bits)};
    all[bits] = __half2float(__half(raw));
  }
  return all;
}

float widened(std::uint16_t bits, bool bf16) {
  if (bf16) return std::bit_cast<float>(std::uint32_t{bits} << 16);
  static const std::vector<float> halves = widened_halves();
  return halves[bits];
}

Warp& own_warp() { return self->block->warps[static_cast<std::size_t>(self->index / 32)]; }

/// An operand in shared memory, as its descriptor says (PTX ISA "Matrix Descriptor Format").
class Operand {
 public:
  Operand(std::uint64_t bits, bool mn_major)
      : start_(field(bits)), leading_(field(bits >> 16)), stride_(field(bits >> 32)), mn_major_(mn_major) {
    static constexpr std::uint32_t kWidths[] = {0, 128, 64, 32};
    width_ = kWidths[bits >> 62];
  }
  /// Where element (mn, k) lies: mn is the row of A or the column of B.
  std::uint32_t address(int row_or_column, int depth) const {
    const auto mn = static_cast<std::uint32_t>(row_or_column);
    const auto k = static_cast<std::uint32_t>(depth);
    if (width_ == 0) {
      if (!mn_major_) return start_ + k / 8 * leading_ + mn / 8 * stride_ + mn % 8 * 16 + k % 8 * 2;
      return start_ + k / 8 * leading_ + mn / 8 * stride_ + k % 8 * 16 + mn % 8 * 2;
    }
    const std::uint32_t per_row = width_ / 2;
    const std::uint32_t at =
        mn_major_ ? start_ + mn / per_row * leading_ + k / 8 * stride_ + k % 8 * width_ + mn % per_row * 2
                  : start_ + mn / 8 * stride_ + mn % 8 * width_ + k * 2;
    return at ^ ((at >> 7 & (width_ / 16 - 1)) << 4);
  }
  bool mn_major() const { return mn_major_; }
  /// Empty, or why the groups of eight rows are not as a box with this swizzle has them.
  std::string wrong_stride() const {
    if (width_ == 0 || stride_ % (8 * width_) == 0) return {};
    return "a stride of " + std::to_string(stride_) + " bytes, no multiple of the " + std::to_string(8 * width_) +
           " after which its swizzle repeats";
  }
  tma::Swizzle swizzle() const {
    return width_ == 128  ? tma::Swizzle::b128
           : width_ == 64 ? tma::Swizzle::b64
           : width_ == 32 ? tma::Swizzle::b32
                          : tma::Swizzle::none;
  }

 private:
  static std::uint32_t field(std::uint64_t bits) { return static_cast<std::uint32_t>(bits & 0x3FFFu) << 4; }
  std::uint32_t start_, leading_, stride_, width_ = 0;
  bool mn_major_;
};

/// Reads `count` rows of A, or columns of B, from `first` on, by chunks of eight: to[k * count + i] is element k.
void read_operand(const Block& block, const Operand& operand, int first, int count, bool bf16, float* to) {
  const int step = operand.mn_major() ? 8 : 1;  // a chunk holds eight elements of a row or column
  const int next = operand.mn_major() ? 1 : count;
  for (int k = 0; k < kDepth; k += 8 / step)
    for (int mn = 0; mn < count; mn += step) {
      std::array<std::uint16_t, 8> chunk;
      std::memcpy(chunk.data(), host_of(block, operand.address(first + mn, k)), sizeof chunk);
      for (int i = 0; i < 8; ++i) to[k * count + mn + i * next] = widened(chunk[static_cast<std::size_t>(i)], bf16);
    }
}

void add_chunks(const Operand& operand, int first, int count,
                std::vector<std::pair<std::uint32_t, std::uint32_t>>& to) {
  static std::vector<std::uint32_t> chunks;
  chunks.clear();
  const int mn_step = operand.mn_major() ? 8 : 1;  // a chunk holds eight elements of a row or column
  for (int mn = first; mn < first + count; mn += mn_step)
    for (int k = 0; k < kDepth; k += 8 / mn_step) chunks.push_back(operand.address(mn, k) & ~15u);
  std::ranges::sort(chunks);
  const auto repeated = std::ranges::unique(chunks);
  chunks.erase(repeated.begin(), repeated.end());
  for (const std::uint32_t at : chunks) {
    if (!to.empty() && to.back().first + to.back().second == at)
      to.back().second += 16;
    else
      to.emplace_back(at, 16);
  }
}

int warp_of_group() { return self->index / 32 % 4; }

/// Of `count` rows of A, or columns of B.
void begin_product_read(Product& product, const Operand& operand, int first, int count) {
  if (const std::string wrong = operand.wrong_stride(); !wrong.empty() && (count > 8 || operand.mn_major()))
    report(Rule::misaligned, "a wgmma reads an operand with " + wrong, product.place);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> chunks;
  add_chunks(operand, first, count, chunks);
  Block& block = *self->block;
  for (const auto& [at, bytes] : chunks) {
    if (!inside_shared(block, at, bytes))
      stop(Rule::outside_shared, "a wgmma reads " + shared_extent(at, bytes), product.place);
    check_read(block, at, bytes, {.name = "a wgmma", .asynchronous = true, .multiplies = true, .place = product.place});
    const Cell& cell = block.cells[at];
    const auto loaded = static_cast<tma::Swizzle>(cell.swizzle - 1);
    if (cell.swizzle != 0 && loaded != operand.swizzle())
      report(Rule::wrong_swizzle,
             "a wgmma reads " + spot(at) + " with the swizzle " + std::string(tma::to_string(operand.swizzle())) +
                 ", and the tensor load at " + source_line(cell.write_place) + " brought it with " +
                 std::string(tma::to_string(loaded)),
             product.place);
    block.cells.add_readers_in_flight(at, bytes, 1);
  }
  product.reads.insert(product.reads.end(), chunks.begin(), chunks.end());
}

/// Adds the product to the accumulators that are kept for it.
void compute(const Block& block, const Product& product, int warp) {
  static std::vector<float> a(kRows * kDepth);
  static std::vector<float> b;
  static std::vector<float> sums;
  const Operand left(product.a, product.a_mn_major);
  const Operand right(product.b, product.b_mn_major);
  const auto columns = static_cast<std::size_t>(product.columns);
  b.resize(columns * kDepth);
  sums.resize(kRows * columns);
  read_operand(block, left, warp * kRows, kRows, product.bf16, a.data());
  read_operand(block, right, 0, product.columns, product.bf16, b.data());
  constexpr std::size_t kTogether = 8;  // columns of which the sums stay in registers
  for (std::size_t n = 0; n < columns; n += kTogether)
    for (std::size_t m = 0; m < kRows; ++m) {
      std::array<float, kTogether> some{};
      for (std::size_t k = 0; k < kDepth; ++k)
        for (std::size_t i = 0; i < kTogether; ++i) some[i] += a[k * kRows + m] * b[k * columns + n + i];
      std::ranges::copy(some, sums.begin() + static_cast<std::ptrdiff_t>(m * columns + n));
    }
  Accumulators& to = *product.sums;
  for (std::size_t lane = 0; lane < 32; ++lane)
    for (std::size_t i = 0; i < to.each; ++i) {
      const std::size_t row = lane / 4 + i % 4 / 2 * 8;
      const std::size_t column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      float& sum = to.values[lane * to.each + i];
      sum = (product.accumulate ? sum : 0.0f) + sums[row * columns + column];
    }
}

void end_product(Block& block, const Product& product, int warp) {
  compute(block, product, warp);
  for (const auto& [at, bytes] : product.reads) {
    block.cells.add_readers_in_flight(at, bytes, -1);
    note_read(block, at, bytes, product.slot, product.clock);
  }
  --launch->products;
  Accumulators& sums = *product.sums;
  if (--sums.products > 0) return;
  for (std::size_t lane = 0; lane < 32; ++lane)
    std::memcpy(sums.registers[lane], sums.values.data() + lane * sums.each, sums.each * sizeof(float));
}

/// The accumulators of all lanes, taken away from the threads: until the products end, their registers hold NaN.
std::shared_ptr<Accumulators> take_accumulators(const Warp& warp, const Collective& all, std::size_t each) {
  const auto* first = static_cast<const float*>(all.operands[0]);
  if (const Product* same = warp.find_product([&](const Product& one) { return one.sums->registers[0] == first; }))
    return same->sums;
  auto sums = std::make_shared<Accumulators>();
  sums->each = each;
  sums->values.resize(32 * each);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    auto* const registers = const_cast<float*>(static_cast<const float*>(all.operands[lane]));
    sums->registers[lane] = registers;
    std::memcpy(sums->values.data() + lane * each, registers, each * sizeof(float));
    std::fill_n(registers, each, std::numeric_limits<float>::quiet_NaN());
  }
  return sums;
}

/// Lanes of a warp at the same wgmma instruction; `step` tells one from another.
enum class Step : std::uint8_t { fence, multiply, commit, wait };

template <class Finish>
void all_lanes(Step step, const void* operand, const void* place, const Finish& finish) {
  collect(Collect::products, ~0u, static_cast<std::uint64_t>(step), 0, 32, operand, place, [&](Collective& all) {
    for (const std::uint64_t other : all.values)
      if (other != static_cast<std::uint64_t>(step)) {
        report(Rule::collective, "lanes of a warp are at different wgmma instructions", place);
        return;
      }
    finish(all);
  });
}

struct Fragments {
  float* sums;
  const std::uint32_t *a, *b;
};

std::uint16_t half_of(std::uint32_t word, std::size_t which) {
  return static_cast<std::uint16_t>(word >> (16 * which));
}

struct MatrixRow {
  std::uint32_t* registers;
  void* row;
};

using Matrix = std::array<std::array<std::uint16_t, 8>, 8>;

}  // namespace

void wgmma_fence() {
  const Entry entry;
  all_lanes(Step::fence, nullptr, TMAOPS_PLACE, [](Collective&) { own_warp().wgmma_fenced = true; });
}

void wgmma(float* sums, int columns, bool bf16, std::uint64_t a, std::uint64_t b, bool a_mn_major, bool b_mn_major,
           bool accumulate) {
  const Entry entry;
  const void* const place = TMAOPS_PLACE;
  Warp& warp = own_warp();
  const std::array<std::uint64_t, 3> operands{a, b, accumulate ? 1u : 0u};
  if (warp.open.empty()) warp.wgmma_operands = operands;
  if (warp.wgmma_operands != operands)
    report(Rule::collective, "lanes of a warp give wgmma different descriptors", place);
  all_lanes(Step::multiply, sums, place, [&](Collective& all) {
    if (!warp.wgmma_fenced)
      report(Rule::missing_wgmma_fence,
             "the first wgmma after its registers were written has no wgmma_fence() before it", place);
    note_group_step(warp, a ^ b * 3 ^ static_cast<std::uint64_t>(columns) << 48 ^ (accumulate ? 1 : 0), place);
    Product product{.columns = columns,
                    .bf16 = bf16,
                    .a = a,
                    .b = b,
                    .a_mn_major = a_mn_major,
                    .b_mn_major = b_mn_major,
                    .accumulate = accumulate,
                    .place = place,
                    .sums = nullptr,
                    .reads = {}};
    std::tie(product.slot, product.clock) = take_slot();
    product.sums = take_accumulators(warp, all, static_cast<std::size_t>(columns / 2));
    ++product.sums->products;
    ++launch->products;
    begin_product_read(product, Operand(a, a_mn_major), warp_of_group() * kRows, kRows);
    begin_product_read(product, Operand(b, b_mn_major), 0, columns);
    warp.products.push_back(std::move(product));
  });
}

void wgmma_commit() {
  const Entry entry;
  all_lanes(Step::commit, nullptr, TMAOPS_PLACE, [](Collective&) {
    Warp& warp = own_warp();
    warp.groups.push_back(std::exchange(warp.products, {}));
  });
}

void wgmma_wait(int groups) {
  const Entry entry;
  all_lanes(Step::wait, nullptr, TMAOPS_PLACE, [&](Collective& all) {
    Warp& warp = own_warp();
    while (warp.groups.size() > static_cast<std::size_t>(groups)) {
      for (const Product& product : warp.groups.front()) {
        end_product(*self->block, product, warp_of_group());
        for (Thread* thread : all.threads) {
          Clock& known = thread->clocks.seen[product.slot];
          known = std::max(known, product.clock);
        }
      }
      warp.groups.pop_front();
    }
    if (groups == 0) warp.wgmma_fenced = false;
  });
}

void check_accumulators(const void* pointer, bool writes, const void* place) {
  const Product* product = own_warp().find_product([&](const Product& one) {
    const float* const first = one.sums->registers[static_cast<std::size_t>(self->index % 32)];
    return pointer >= first && pointer < first + one.sums->each;
  });
  if (product != nullptr)
    report(Rule::missing_wgmma_wait,
           std::string("it ") + (writes ? "writes" : "reads") + " accumulators of the wgmma issued at " +
               source_line(product->place) + ", for which no wgmma_wait() has waited",
           place);
}

void check_products_ended(Block& block) {
  for (const Warp& warp : block.warps)
    if (const Product* product = warp.find_product([](const Product&) { return true; }))
      report(Rule::ends_too_early, "its block ends with a wgmma that no wgmma_wait() has waited for", product->place);
}

void multiply_add(float* sums, const std::uint32_t* a, const std::uint32_t* b, bool bf16) {
  const Entry entry;
  const Fragments mine{sums, a, b};
  collect(Collect::multiply_add, ~0u, 0, 0, 32, &mine, TMAOPS_PLACE, [&](Collective& all) {
    float left[16][16];
    float right[16][8];
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const auto& one = *static_cast<const Fragments*>(all.operands[lane]);
      const std::size_t g = lane / 4;
      const std::size_t t = lane % 4;
      for (std::size_t h = 0; h < 2; ++h) {
        for (std::size_t i = 0; i < 4; ++i)
          left[g + i % 2 * 8][2 * t + h + i / 2 * 8] = widened(half_of(one.a[i], h), bf16);
        for (std::size_t i = 0; i < 2; ++i) right[2 * t + h + i * 8][g] = widened(half_of(one.b[i], h), bf16);
      }
    }
    for (std::size_t lane = 0; lane < 32; ++lane) {
      float* const to = static_cast<const Fragments*>(all.operands[lane])->sums;
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t row = lane / 4 + i / 2 * 8;
        const std::size_t column = lane % 4 * 2 + i % 2;
        for (std::size_t k = 0; k < 16; ++k) to[i] += left[row][k] * right[k][column];
      }
    }
  });
}

void load_matrices(std::uint32_t* to, const void* row, bool transposed) {
  const Entry entry;
  const void* const place = TMAOPS_PLACE;
  access(row, 16, {}, place);
  const MatrixRow mine{to, const_cast<void*>(row)};
  collect(Collect::load_matrices, ~0u, 0, 0, 32, &mine, place, [&](Collective& all) {
    for (std::size_t m = 0; m < 4; ++m) {
      Matrix matrix;
      for (std::size_t r = 0; r < 8; ++r)
        std::memcpy(matrix[r].data(), static_cast<const MatrixRow*>(all.operands[m * 8 + r])->row, 16);
      for (std::size_t lane = 0; lane < 32; ++lane) {
        const std::size_t r = lane / 4;
        const std::size_t k = lane % 4 * 2;
        const std::uint32_t low = transposed ? matrix[k][r] : matrix[r][k];
        const std::uint32_t high = transposed ? matrix[k + 1][r] : matrix[r][k + 1];
        static_cast<const MatrixRow*>(all.operands[lane])->registers[m] = low | high << 16;
      }
    }
  });
}

void store_matrices(void* row, const std::uint32_t* from, bool transposed) {
  const Entry entry;
  const void* const place = TMAOPS_PLACE;
  access(row, 16, {.writes = true, .by_warp = true}, place);
  const bool another_stores_there = std::exchange(self->same_store, {}).to != nullptr;
  const MatrixRow mine{const_cast<std::uint32_t*>(from), row};
  collect(Collect::store_matrices, ~0u, another_stores_there ? 1 : 0, 0, 32, &mine, place, [&](Collective& all) {
    std::map<const void*, std::array<std::uint16_t, 8>> stored;
    const bool compares = std::ranges::count(all.values, 1u) > 0;
    for (std::size_t m = 0; m < 4; ++m) {
      Matrix matrix;
      for (std::size_t lane = 0; lane < 32; ++lane) {
        const std::uint32_t word = static_cast<const MatrixRow*>(all.operands[lane])->registers[m];
        for (std::size_t i = 0; i < 2; ++i) {
          const std::size_t r = lane / 4;
          const std::size_t c = lane % 4 * 2 + i;
          (transposed ? matrix[c][r] : matrix[r][c]) = half_of(word, static_cast<int>(i));
        }
      }
      for (std::size_t r = 0; r < 8; ++r) {
        void* const to = static_cast<const MatrixRow*>(all.operands[m * 8 + r])->row;
        std::memcpy(to, matrix[r].data(), 16);
        if (!compares) continue;
        if (const auto [before, is_new] = stored.try_emplace(to, matrix[r]); !is_new && before->second != matrix[r])
          report(
              Rule::race,
              "two lanes give store_matrices the same row, " + spot(place_of(to).address) + ", for values that differ",
              place);
      }
    }
  });
}

}  // namespace tmaops::executor
