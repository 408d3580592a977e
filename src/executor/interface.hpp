// What the host's twins of the device layer (src/executor/shim) ask of the executor. Kernels are compiled against these
// functions; all of them are called by a thread of a kernel, on its own stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tmaops::executor {

// --- collectives of a warp and of a block ---------------------------------------------------------------------------
enum class Collect : std::uint8_t {
  sync,
  shuffle,
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  ballot,
  sum,
  least_signed,
  most_signed,
  least,
  most,
  all_bits,
  any_bits,
  odd_bits,
  elect,
  registers,
  multiply_add,
  load_matrices,
  store_matrices,
  products
};
std::uint64_t warp_collective(Collect what, unsigned mask, std::uint64_t value, int argument, int width);
void increase_registers(int registers);
void decrease_registers(int registers);
/// Barrier `id` of the block for `threads` threads; 0 stands for all of them.
void block_barrier(int id, int threads, bool waits);
enum class BlockVote : std::uint8_t { count, all, any };
int block_vote(BlockVote how, bool value);
void cluster_arrive(bool orders_memory);
void cluster_wait();
std::uint32_t cluster_rank();
std::uint32_t cluster_size();

// --- shared memory --------------------------------------------------------------------------------------------------
void* dynamic_shared();
/// Memory of a fixed size, the same for the same key.
void* block_shared(const void* key, std::size_t bytes, std::size_t alignment);
/// Adds to how many places of the thread allow it to read what nothing has written.
void allow_unwritten_reads(int more);
std::uint32_t shared_address(const void* pointer);
void* shared_pointer(std::uint32_t address);

// --- mbarriers ------------------------------------------------------------------------------------------------------
void init_barrier(void* barrier, std::uint32_t arrivals);
void fence_barrier_init();
void arrive(void* barrier, std::uint32_t expected_bytes);
void arrive_at(void* barrier, std::uint32_t rank);
bool test_barrier(void* barrier, std::uint32_t parity);
void wait_barrier(void* barrier, std::uint32_t parity, const char* what, int stage);
void fence_async();

// --- asynchronous copies --------------------------------------------------------------------------------------------
inline constexpr unsigned kMulticast = 1u << 16;
/// `blocks`: kMulticast and a bit for each block of the cluster that receives the box; 0 stands for this one alone.
void tensor_load(void* to, const void* map, const std::int32_t* at, int rank, void* barrier, unsigned blocks);
void tensor_store(const void* map, const std::int32_t* at, int rank, const void* from);
void tensor_prefetch(const void* map, int rank);
void bulk_load(void* to, const void* from, std::uint32_t bytes, void* barrier);
void bulk_store(void* to, const void* from, std::uint32_t bytes);
void bulk_prefetch(const void* from, std::uint32_t bytes);
void store_async(void* to, const void* value, void* barrier, std::uint32_t rank);
void commit_stores();
void wait_stores_read(int groups);
void copy_async(void* to, const void* from, std::uint32_t size, std::uint32_t bytes);
void commit_copies();
void wait_copies(int groups);

// --- tensor cores ---------------------------------------------------------------------------------------------------
void wgmma_fence();
void wgmma(float* sums, int columns, bool bf16, std::uint64_t a, std::uint64_t b, bool a_mn_major, bool b_mn_major,
           bool accumulate);
void wgmma_commit();
void wgmma_wait(int groups);
void multiply_add(float* sums, const std::uint32_t* a, const std::uint32_t* b, bool bf16);
void load_matrices(std::uint32_t* to, const void* row, bool transposed);
void store_matrices(void* row, const std::uint32_t* from, bool transposed);

// --- programs of one's own ------------------------------------------------------------------------------------------
struct ProgramLaunch {
  unsigned grid[3], block[3], cluster;
  std::size_t shared_bytes;
  bool dependent;
};
/// Runs a kernel, `call` for each thread, and prints the rules that it breaks to stderr. Whether it keeps all of them.
/// TMAOPS_EXECUTOR_SEED and TMAOPS_EXECUTOR_SCHEDULE choose the run.
bool run_program_kernel(const ProgramLaunch& how, void (*call)(const void* kernel, void** parameters),
                        const void* kernel, void** parameters);

// --- the rest -------------------------------------------------------------------------------------------------------
void thread_fence();
/// Checks an atomic operation on these bytes. The operation itself follows, before any other thread runs.
void atomic_access(const void* at, std::size_t bytes);
void wait_for_previous_kernel();
void let_next_kernel_start();
std::int64_t cycles();
void sleep();
[[noreturn]] void trap();

}  // namespace tmaops::executor
