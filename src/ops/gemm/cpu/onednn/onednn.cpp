// GEMM through oneDNN's matmul. D is cut into tiles of whole rows, or of whole columns where it has few rows. They
// depend on the problem alone; each is one call of a sequential primitive on a thread of our own pool. So
// TMAOPS_NUM_THREADS holds, a forked child works, and the bits do not depend on the number of threads
// (docs/findings/gemm_cpu.md, C1).
//
// A and B are read where they lie if oneDNN's fast kernels take them, else copied; f16 becomes f32 on the way, which is
// exact, where oneDNN has no f16. B is packed once where many tiles read it. oneDNN writes D, or f32 accumulators in
// scratch. The epilogue is ours: oneDNN's relu turns NaN into 0, and the gelu of 3.7 infinity into NaN.
#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "core/fail.hpp"
#include "core/parallel.hpp"
#include "ops/gemm/cpu/onednn/library.hpp"
#include "ops/gemm/cpu/onednn/plain.hpp"
#include "ops/gemm/shared/host_epilogue.hpp"

namespace tmaops::ops::gemm::onednn {
namespace {

constexpr std::int64_t kTilesWanted = 8;
constexpr std::int64_t kTwoTiles = 512;  // with at most so many rows there are two tiles, which read B in place
constexpr std::int64_t kLeastRows = 64;
constexpr std::int64_t kLeastColumns = 512;
constexpr std::int64_t kLeastWork = 1 << 21;   // multiply-adds that make a call worth its cost
constexpr std::int64_t kPieceColumns = 192;    // of B, packed by one task: a multiple of oneDNN's blocks of 16 to 64
constexpr std::int64_t kPackFromTilesAmx = 3;  // that share a row-major B (docs/findings/gemm_cpu.md, C2)
constexpr std::int64_t kPackFromTiles = 8;
// oneDNN 3 reads rows of 16-bit A in whole AMX tile rows, 32 elements, and multiplies what lies behind the end by 0: a
// NaN or infinity at the start of the next row would come through.
constexpr std::int64_t kRowStep = 32;
constexpr std::size_t kAlignment = 64;  // of every buffer and its parts, for vector loads

std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }
template <class Integer>
Integer round_up(Integer value, Integer multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::memory memory_of(const dnnl::memory::desc& layout, const void* data) {
  return {layout, engine(), const_cast<void*>(data)};  // oneDNN only reads its inputs
}

/// Whether oneDNN uses these instructions here, as ONEDNN_MAX_CPU_ISA allows.
bool has(dnnl::cpu_isa instructions) {
  const auto wanted = static_cast<unsigned>(instructions);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

/// What fn returns. oneDNN works for it on this thread alone; its failures become errors of the catalogue.
template <class Fn>
decltype(auto) alone(const Problem& problem, const Fn& fn) {
  const Sequential sequential;
  try {
    return fn();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    fail(ErrorCode::internal, "gemm: variant onednn", error.what(), problem.text());
  }
}

/// D is cut into `count` tiles along its rows, or along its columns.
struct Tiles {
  bool of_rows = true;
  std::int64_t size = 0;
  std::int64_t count = 1;
};

Tiles make_tiles(const Problem& problem, bool packed_for_amx) {
  // Multiples of four tiles of equal height use all threads (docs/findings/gemm_cpu.md, C3). Without AVX-512 oneDNN
  // packs its operands for large products alone (C4).
  std::int64_t count = has(dnnl::cpu_isa::avx512_core) ? round_up<std::int64_t>(divide_up(problem.m, 256), 4)
                                                       : round_up<std::int64_t>(divide_up(problem.m, 512), 2);
  if (packed_for_amx) count = divide_up(problem.m, 128);
  if (problem.m <= kTwoTiles) count = 2;
  if (problem.batch >= kTilesWanted) count = 1;
  const std::int64_t rows = std::max({round_up<std::int64_t>(divide_up(problem.m, count), 8), kLeastRows,
                                      kLeastWork / std::max<std::int64_t>(1, problem.n * problem.k)});
  if (rows < problem.m) return {true, rows, divide_up(problem.m, rows)};
  if (problem.batch >= kTilesWanted) return {true, problem.m, 1};
  const std::int64_t share = round_up<std::int64_t>(divide_up(problem.n, kTilesWanted), 64);
  const std::int64_t columns = std::min(problem.n, std::max(share, kLeastColumns));
  return {false, columns, divide_up(problem.n, columns)};
}

const char* element(const void* data, const MatrixLayout& layout, std::int64_t batch, std::int64_t row,
                    std::int64_t column) {
  return static_cast<const char*>(data) +
         layout.offset(batch, row, column) * static_cast<std::int64_t>(size_of(layout.dtype));
}

struct Free {
  void operator()(char* data) const { ::operator delete(data, std::align_val_t{kAlignment}); }
};
using Buffer = std::unique_ptr<char, Free>;
Buffer make_buffer(std::size_t bytes) {
  return Buffer(static_cast<char*>(::operator new(bytes, std::align_val_t{kAlignment})));
}

/// What a thread of a run works with.
struct Worker {
  Buffer scratch{};  // a copy, oneDNN's scratchpad, accumulators
  dnnl::stream stream{engine()};
};

/// What a run works with.
struct Workspace {
  Buffer packed_b{};
  std::vector<Worker> workers{};
};

/// A part of D.
struct Tile {
  std::int64_t batch = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::size_t kind = 0;    // 1: the last of its matrix, which may be smaller
  std::size_t b_part = 0;  // which part of packed B it reads
};

/// A call, and what its runs need.
struct Call : RowMajorForm {
  Tiles tiles{};
  bool direct = false;    // oneDNN writes D
  bool finished = false;  // ... with the bias, and our epilogue has nothing to do
  bool copy_a = false;    // the rows of a tile
  bool copy_b = false;    // pieces of B, before they are packed
  bool pack_b = false;
  Plain a{}, b{};                                              // in the type that oneDNN reads
  std::array<dnnl::matmul::primitive_desc, 2> descriptions{};  // by Tile::kind
  std::array<dnnl::matmul, 2> primitives{};
  std::size_t part_bytes = 0;  // of packed B
  std::size_t copy_bytes = 0;
  std::size_t scratchpad_bytes = 0;
  std::size_t scratch_bytes = 0;
  std::mutex mutex{};
  std::vector<Workspace> idle{};  // a plan may run in several threads at once

  explicit Call(const RowMajorForm& form) : RowMajorForm(form) {
    if (problem.k == 0) return;
    if (!find(problem.a.dtype) && !find(DType::f32))
      fail(ErrorCode::internal, "gemm: variant onednn", problem.text(),
           "an f32 matmul of oneDNN, which it has for every processor");
    for (const auto& description : descriptions) {
      part_bytes = std::max(part_bytes, round_up(description.weights_desc().get_size(), kAlignment));
      scratchpad_bytes = std::max(scratchpad_bytes, round_up(description.scratchpad_desc().get_size(), kAlignment));
    }
    const Tile first = tile_at(0);
    const std::int64_t depth = round_up(problem.k, kRowStep);
    const std::int64_t copied = std::max(copy_a ? first.rows * depth : 0, copy_b ? kPieceColumns * depth : 0);
    copy_bytes = round_up(static_cast<std::size_t>(copied) * size_of(a.dtype), kAlignment);
    const auto accumulators = static_cast<std::size_t>(direct ? 0 : first.rows * first.columns) * sizeof(float);
    scratch_bytes = copy_bytes + scratchpad_bytes + accumulators;
  }

  Tile tile_at(std::int64_t i) const {
    const std::int64_t index = i % tiles.count;
    const std::int64_t start = index * tiles.size;
    const bool last = index == tiles.count - 1;
    Tile tile{.batch = i / tiles.count, .rows = problem.m, .columns = problem.n, .kind = last ? 1u : 0u};
    (tiles.of_rows ? tile.row : tile.column) = start;
    std::int64_t& extent = tiles.of_rows ? tile.rows : tile.columns;
    extent = std::min(tiles.size, extent - start);
    tile.b_part = static_cast<std::size_t>((tiles.of_rows ? tile.batch : i) % b_parts());
    return tile;
  }
  std::int64_t b_parts() const {
    return (problem.b.batch_stride == 0 ? 1 : problem.batch) * (tiles.of_rows ? 1 : tiles.count);
  }
  Plain a_of(const Tile& tile) const { return copy_a && !a.row_major ? Plain{a.dtype, false, tile.rows} : a; }

  /// How oneDNN is to compute the problem from operands of a type; false when it cannot.
  bool find(DType type) {
    const bool amx = type != DType::f32 && has(dnnl::cpu_isa::avx512_core_amx);
    // oneDNN 2.6.3's AMX kernels stop with an illegal instruction at some odd K (79 x 6 x 63 in bf16): f32 takes these.
    if (amx && problem.k % 2 != 0) return false;
    a = {type, problem.a.order != Order::column, problem.a.leading_dimension()};
    b = {type, problem.b.order != Order::column, problem.b.leading_dimension()};
    tiles = make_tiles(problem, amx && b.row_major);
    const Tile first = tile_at(0);

    const bool pad = type != DType::f32 && a.row_major && dnnl::version()->major >= 3 && problem.k % kRowStep != 0;
    copy_a = pad || type != problem.a.dtype || problem.a.order == Order::general ||
             a.leading_dimension != (a.row_major ? problem.k : first.rows);
    if (copy_a) a.leading_dimension = pad ? round_up(problem.k, kRowStep) : problem.k;
    const std::int64_t dense = b.row_major ? problem.n : problem.k;
    copy_b = type != problem.b.dtype || problem.b.order == Order::general || b.leading_dimension < dense;
    const bool often = tiles.of_rows && tiles.count >= (amx ? kPackFromTilesAmx : kPackFromTiles);
    pack_b = copy_b || (b.row_major && often) || (b.leading_dimension > dense && first.rows * 2 < problem.m);

    // D must be dense: oneDNN's fast kernels take no other, and the detour through scratch beats the others.
    const bool dense_d = problem.d.order == Order::row && problem.d.leading_dimension() == first.columns;
    const bool bias = !problem.bias_dtype || (problem.bias_axis == BiasAxis::column && problem.bias_stride == 1);
    const bool product = bias && problem.alpha == 1.0F && !problem.c && problem.activation == Activation::none;
    for (const bool any : {true, false}) {
      if (any && !pack_b) continue;
      direct = finished = dense_d && product;
      if (direct && make_primitives(any)) return true;
      finished = false;
      direct = dense_d && problem.d.dtype == DType::f32 && !problem.c_is_d;
      if (make_primitives(any)) return true;
    }
    return false;
  }

  /// Of the two kinds of tiles; false when oneDNN has none. `any`: B is packed into the layout that oneDNN likes best.
  bool make_primitives(bool any) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);  // whatever ONEDNN_DEFAULT_FPMATH_MODE says
    for (const std::int64_t i : {std::int64_t{0}, tiles.count - 1}) {
      const Tile tile = tile_at(i);
      const auto rows_of_d = Plain{direct ? problem.d.dtype : DType::f32, true, tile.columns};
      const dnnl::memory::desc in_a = a_of(tile).descriptor(tile.rows, problem.k);
      const dnnl::memory::desc out = rows_of_d.descriptor(tile.rows, tile.columns);
      dnnl::memory::desc in_b;
      if (any && tiles.of_rows && i > 0)
        in_b = descriptions[0].weights_desc();
      else if (any)
        in_b = {{problem.k, tile.columns}, data_type(b.dtype), dnnl::memory::format_tag::any};
      else
        in_b = (pack_b ? Plain{b.dtype, true, tile.columns} : b).descriptor(problem.k, tile.columns);
      dnnl::memory::desc bias;
      if (finished && problem.bias_dtype)
        bias = {{1, tile.columns}, data_type(*problem.bias_dtype), dnnl::memory::format_tag::ab};
      try {
#if DNNL_VERSION_MAJOR >= 3
        const dnnl::matmul::primitive_desc found(engine(), in_a, in_b, bias, out, attributes);
#else
        const dnnl::matmul::primitive_desc found(dnnl::matmul::desc(in_a, in_b, bias, out), attributes, engine());
#endif
        for (std::size_t kind = i == 0 ? 0 : 1; kind <= tile.kind; ++kind) {
          descriptions[kind] = found;
          primitives[kind] = dnnl::matmul(found);
        }
      } catch (const dnnl::error& error) {
        if (error.status == dnnl_out_of_memory) throw;
        return false;
      }
    }
    return true;
  }

  /// Packs kPieceColumns of the columns of B that a tile reads.
  void pack_piece(const Tile& tile, std::int64_t first, char* packed_b, Worker& worker) const {
    const std::int64_t columns = std::min(kPieceColumns, tile.columns - first);
    if (columns <= 0) return;
    Plain from = b;
    const char* source = element(arguments.b, problem.b, tile.batch, 0, tile.column + first);
    if (copy_b) {
      from.leading_dimension = b.row_major ? columns : problem.k;
      copy_block(arguments.b, problem.b, problem.b.offset(tile.batch, 0, tile.column + first), problem.k, columns, from,
                 worker.scratch.get());
      source = worker.scratch.get();
    }
    const dnnl::memory::desc whole = descriptions[tile.kind].weights_desc();
    dnnl::memory in = memory_of(from.descriptor(problem.k, columns), source);
    dnnl::memory out =
        memory_of(whole.submemory_desc({problem.k, columns}, {0, first}), packed_b + tile.b_part * part_bytes);
    dnnl::reorder(in, out).execute(worker.stream, in, out);
  }

  void run_tile(const Tile& tile, const char* packed_b, Worker& worker) const {
    char* const scratch = worker.scratch.get();
    const char* in_a = element(arguments.a, problem.a, tile.batch, tile.row, 0);
    if (copy_a) {
      copy_block(arguments.a, problem.a, problem.a.offset(tile.batch, tile.row, 0), tile.rows, problem.k, a_of(tile),
                 scratch);
      in_a = scratch;
    }
    const char* in_b = element(arguments.b, problem.b, tile.batch, 0, tile.column);
    if (pack_b) in_b = packed_b + tile.b_part * part_bytes;
    const char* out = scratch + copy_bytes + scratchpad_bytes;
    if (direct) out = element(arguments.d, problem.d, tile.batch, tile.row, tile.column);

    const dnnl::matmul::primitive_desc& description = descriptions[tile.kind];
    std::unordered_map<int, dnnl::memory> memories = {
        {DNNL_ARG_SRC, memory_of(description.src_desc(), in_a)},
        {DNNL_ARG_WEIGHTS, memory_of(description.weights_desc(), in_b)},
        {DNNL_ARG_DST, memory_of(description.dst_desc(), out)},
        {DNNL_ARG_SCRATCHPAD, memory_of(description.scratchpad_desc(), scratch + copy_bytes)}};
    if (finished && problem.bias_dtype)
      memories.emplace(DNNL_ARG_BIAS, memory_of(description.bias_desc(), arguments.bias));
    primitives[tile.kind].execute(worker.stream, memories);
    if (!finished)
      store_tile(problem, arguments, tile.batch, tile.row, tile.column, tile.rows, tile.columns,
                 reinterpret_cast<const float*>(out), tile.columns);
  }

  void run() {
    if (problem.k == 0) {
      for (std::int64_t batch = 0; batch < problem.batch; ++batch)
        store_tile(problem, arguments, batch, 0, 0, problem.m, problem.n, nullptr, 0);
      return;
    }
    Workspace workspace = take();
    char* const packed_b = workspace.packed_b.get();
    if (pack_b) {
      const std::int64_t pieces = divide_up(tiles.of_rows ? problem.n : tiles.size, kPieceColumns);
      const std::int64_t tiles_of_a_part = tiles.of_rows ? tiles.count : 1;
      for_each(b_parts() * pieces, workspace, [&](std::int64_t i, Worker& worker) {
        pack_piece(tile_at(i / pieces * tiles_of_a_part), i % pieces * kPieceColumns, packed_b, worker);
      });
    }
    for_each(problem.batch * tiles.count, workspace,
             [&](std::int64_t i, Worker& worker) { run_tile(tile_at(i), packed_b, worker); });
    const std::scoped_lock lock(mutex);
    idle.push_back(std::move(workspace));
  }

  /// One that no other run is using.
  Workspace take() {
    const std::scoped_lock lock(mutex);
    if (idle.empty()) return {.packed_b = make_buffer(pack_b ? part_bytes * static_cast<std::size_t>(b_parts()) : 0)};
    Workspace last = std::move(idle.back());
    idle.pop_back();
    return last;
  }

  template <class Fn>
  void for_each(std::int64_t count, Workspace& workspace, const Fn& fn) {
    const int threads = call_threads(problem);
    workspace.workers.resize(std::max(workspace.workers.size(), static_cast<std::size_t>(threads)));
    parallel_for(count, 1, threads, [&](std::int64_t begin, std::int64_t end, int worker) {
      Worker& mine = workspace.workers[static_cast<std::size_t>(worker)];
      if (!mine.scratch) mine.scratch = make_buffer(scratch_bytes);
      alone(problem, [&] {
        for (std::int64_t i = begin; i < end; ++i) fn(i, mine);
      });
    });
  }
};

}  // namespace

Support supports(const Problem&, const DeviceInfo&) {
  const unsigned runtime = static_cast<unsigned>(dnnl::version()->cpu_runtime);
  if (runtime == DNNL_RUNTIME_SEQ) return Support::yes();
  if (runtime != DNNL_RUNTIME_OMP)
    return Support::no(
        "this oneDNN was built for a thread library other than OpenMP, which tmaops cannot hold to one thread a call; "
        "Debian's and Ubuntu's libdnnl-dev use OpenMP");
  if (OpenMp::get().set_num_threads == nullptr || OpenMp::get().get_max_threads == nullptr)
    return Support::no("the OpenMP run time of this oneDNN is not to be found in the process");
  return Support::yes();
}

Work plan(const Problem& given, const Arguments& given_arguments, const Config&) {
  const RowMajorForm form(given, given_arguments);
  const auto call = alone(form.problem, [&] { return std::make_shared<Call>(form); });
  return Work([call] { call->run(); });
}

}  // namespace tmaops::ops::gemm::onednn
