// GEMM through oneDNN's matmul. D is cut into tiles that depend on the problem alone; each is one call of a sequential
// primitive on a thread of our own pool. So TMAOPS_NUM_THREADS holds, a forked child works, and the bits do not depend
// on the number of threads; measured, this is as fast as oneDNN's own threads (docs/findings/gemm_cpu.md, C1).
//
// Where B serves several tiles, it is packed once into the layout oneDNN likes best, also by all threads. A is read
// where it lies when its tile is dense, else each task makes a dense copy of its rows. f16 becomes f32 on the way,
// which is exact, where oneDNN has no f16. oneDNN writes D itself when it can do the epilogue with one rounding; else
// it leaves f32 accumulators in a tile of scratch for our own epilogue.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "core/fail.hpp"
#include "core/parallel.hpp"
#include "ops/gemm/cpu/onednn/library.hpp"
#include "ops/gemm/cpu/onednn/tiles.hpp"
#include "ops/gemm/shared/call_threads.hpp"
#include "ops/gemm/shared/host_epilogue.hpp"

namespace tmaops::ops::gemm::onednn {
namespace {

constexpr std::size_t kMostThreads = 1024;  // set_num_threads allows no more

/// What one thread needs to run tiles.
struct Worker {
  dnnl::stream stream{engine()};
  AlignedBuffer scratchpad;
  AlignedBuffer copy;  // dense rows of A, or columns of B on their way to the packed layout
  AlignedBuffer accumulators;
  std::array<std::unique_ptr<MatmulCall>, 4> calls{};

  explicit Worker(const TilePlan& plan)
      : scratchpad(aligned_buffer(plan.scratchpad_bytes)),
        copy(aligned_buffer(plan.copy_bytes)),
        accumulators(aligned_buffer(plan.accumulator_bytes)) {}
};

/// Memory of one run at a time.
struct Workspace {
  AlignedBuffer packed_b;
  std::vector<std::unique_ptr<Worker>> workers;

  explicit Workspace(const TilePlan& plan) : packed_b(aligned_buffer(plan.packed_bytes())), workers(kMostThreads) {
    // The rows of zeros under B stay as they are from run to run.
    if (plan.zeros_under_b) std::memset(packed_b.get(), 0, plan.packed_bytes());
  }
  /// Made by the thread that first needs it.
  Worker& worker(int index, const TilePlan& plan) {
    std::unique_ptr<Worker>& slot = workers[static_cast<std::size_t>(index)];
    if (!slot) slot = std::make_unique<Worker>(plan);
    return *slot;
  }
};

/// Workspaces of a plan that no run is using: plans may run in several threads at once.
class Workspaces {
 public:
  explicit Workspaces(const TilePlan& plan) : plan_(plan) { give_back(take()); }

  std::unique_ptr<Workspace> take() {
    const std::scoped_lock lock(mutex_);
    if (idle_.empty()) return std::make_unique<Workspace>(plan_);
    std::unique_ptr<Workspace> workspace = std::move(idle_.back());
    idle_.pop_back();
    return workspace;
  }
  void give_back(std::unique_ptr<Workspace> workspace) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(workspace));
  }

 private:
  const TilePlan& plan_;
  std::mutex mutex_{};
  std::vector<std::unique_ptr<Workspace>> idle_{};
};

/// Packs one piece of B: kPackColumns columns of a tile.
void pack_piece(const Problem& problem, const void* b, const TilePlan& plan, std::int64_t piece, const void* packed,
                Worker& worker) {
  const Tiling& tiling = plan.tiling;
  const std::int64_t across = piece / plan.pieces_per_tile % tiling.across;
  const std::int64_t batch = piece / plan.pieces_per_tile / tiling.across;
  const std::int64_t tile_columns = std::min(tiling.columns, problem.n - across * tiling.columns);
  const std::int64_t first = piece % plan.pieces_per_tile * kPackColumns;
  const std::int64_t columns = std::min(kPackColumns, tile_columns - first);
  if (columns <= 0) return;

  const std::int64_t column = across * tiling.columns + first;
  Plain from = plan.b;
  const void* source = element(b, problem.b, batch, 0, column);
  if (plan.copy_b) {
    from.leading_dimension = from.row_major ? columns : problem.k;
    copy_dense(b, problem.b, batch, 0, column, problem.k, columns, from, worker.copy.get());
    source = worker.copy.get();
  }
  const dnnl::memory::desc source_layout = from.descriptor(problem.k, columns);
  const dnnl::memory::desc whole = plan.shape(across == tiling.across - 1, true).weights_desc();
  const dnnl::memory::desc part = whole.submemory_desc({problem.k, columns}, {0, first});
  dnnl::memory in(source_layout, engine(), const_cast<void*>(source));
  dnnl::memory out(part, engine(), const_cast<void*>(plan.packed_tile(packed, batch, across)));
  dnnl::reorder(dnnl::reorder::primitive_desc(engine(), source_layout, engine(), part)).execute(worker.stream, in, out);
}

void run_tile(const Problem& problem, const Arguments& arguments, const TilePlan& plan, const void* packed,
              std::int64_t tile, Worker& worker) {
  const Tiling& tiling = plan.tiling;
  const std::int64_t batch = tile / (tiling.down * tiling.across);
  const std::int64_t down = tile / tiling.across % tiling.down;
  const std::int64_t across = tile % tiling.across;
  const std::int64_t row = down * tiling.rows;
  const std::int64_t column = across * tiling.columns;
  const std::int64_t rows = std::min(tiling.rows, problem.m - row);
  const std::int64_t columns = std::min(tiling.columns, problem.n - column);
  if (problem.k == 0) return store_tile(problem, arguments, batch, row, column, rows, columns, nullptr, 0);

  const std::size_t which = TilePlan::index(across == tiling.across - 1, down == tiling.down - 1);
  std::unique_ptr<MatmulCall>& call = worker.calls[which];
  if (!call)
    call = std::make_unique<MatmulCall>(plan.primitives[which], plan.descriptions[which], worker.scratchpad.get());
  const void* a = element(arguments.a, problem.a, batch, row, 0);
  if (plan.copy_a) {
    Plain dense = plan.a;
    dense.leading_dimension = plan.copied_line(rows);
    copy_dense(arguments.a, problem.a, batch, row, 0, rows, problem.k, dense, worker.copy.get());
    a = worker.copy.get();
  }
  const void* b =
      plan.pack_b ? plan.packed_tile(packed, batch, across) : element(arguments.b, problem.b, batch, 0, column);
  const void* bias = nullptr;
  if (plan.fused_bias)
    bias = static_cast<const char*>(arguments.bias) + column * static_cast<std::int64_t>(size_of(*problem.bias_dtype));
  void* d = worker.accumulators.get();
  if (plan.direct) d = const_cast<void*>(element(arguments.d, problem.d, batch, row, column));
  call->run(worker.stream, a, b, bias, d);

  if (!plan.direct)
    store_tile(problem, arguments, batch, row, column, rows, columns,
               static_cast<const float*>(worker.accumulators.get()), tiling.columns);
  else if (problem.activation != Activation::none)
    for (std::int64_t i = row; i < row + rows; ++i)
      activate_in_place(problem.activation, arguments.d, problem.d.dtype, problem.d.offset(batch, i, column), columns);
}

/// oneDNN's work on one thread, its failures as errors of the catalogue.
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

/// parallel_for over oneDNN's work.
template <class Fn>
void for_each(const Problem& problem, std::int64_t count, const Fn& fn) {
  parallel_for(count, 1, call_threads(problem), [&](std::int64_t begin, std::int64_t end, int worker) {
    alone(problem, [&] {
      for (std::int64_t i = begin; i < end; ++i) fn(i, worker);
    });
  });
}

/// How oneDNN is to compute a problem: the operands' own type first, then f32, into which f16 and bf16 convert exactly;
/// oneDNN's epilogue first, then ours.
TilePlan plan_tiles(const Problem& problem) {
  TilePlan plan;
  for (const DType dtype : {problem.a.dtype, DType::f32})
    if (plan_tiles(problem, dtype, true, plan) || plan_tiles(problem, dtype, false, plan)) return plan;
  fail(ErrorCode::internal, "gemm: variant onednn", problem.text(),
       "an f32 matmul of oneDNN, which it has for every processor");
}

/// A call, and what its runs need.
struct Call : RowMajorForm {
  TilePlan plan;
  Workspaces workspaces;

  explicit Call(const RowMajorForm& form) : RowMajorForm(form), plan(plan_tiles(problem)), workspaces(plan) {}

  void run() {
    std::unique_ptr<Workspace> workspace = workspaces.take();
    const void* packed = workspace->packed_b.get();
    if (plan.pack_b)
      for_each(problem, plan.packed_batches * plan.tiling.across * plan.pieces_per_tile,
               [&](std::int64_t piece, int index) {
                 pack_piece(problem, arguments.b, plan, piece, packed, workspace->worker(index, plan));
               });
    for_each(problem, problem.batch * plan.tiling.down * plan.tiling.across, [&](std::int64_t tile, int index) {
      run_tile(problem, arguments, plan, packed, tile, workspace->worker(index, plan));
    });
    workspaces.give_back(std::move(workspace));
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
