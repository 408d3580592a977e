// What the executor knows about the launch that it runs. One cluster of blocks runs at a time; its threads are fibers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/work.hpp"
#include "executor/cells.hpp"
#include "executor/fiber.hpp"
#include "executor/findings.hpp"
#include "executor/interface.hpp"
#include "executor/products.hpp"
#include "executor/reason.hpp"

namespace tmaops::executor {

inline constexpr std::uint32_t kWindowBytes = 256 * 1024;     // of a block's shared memory, a power of two
inline constexpr std::uint32_t kReservedBytes = 1024;         // the system's own at its start
inline constexpr std::uint32_t kMostSharedBytes = 227 << 10;  // that a launch may ask for, and
inline constexpr std::uint32_t kMostFixedBytes = 48 << 10;    // that nvcc takes without: CUDA C++ Programming Guide
inline constexpr std::size_t kRegisters = 65536;              // of a multiprocessor
inline constexpr std::size_t kMostBlocks = 16;                // of a cluster
inline constexpr unsigned char kUnwritten = 0xCD;             // what shared memory holds that nothing has written

struct Block;
struct Operation;

/// A store to a word to which another thread has stored by the same instruction. Whether the values differ is seen when
/// the thread comes next: the compiler reports a store before it is done.
struct SameStore {
  const void* to = nullptr;  // null: none
  std::uint32_t bytes = 0;
  std::array<unsigned char, 16> before{};
  std::string_view where;  // "shared", "global"
  Agent by = 0;
  const void* place = nullptr;
};

struct Thread {
  Fiber fiber;
  int index = 0;  // in its block
  Agent agent = 0;
  Extent position;  // threadIdx
  Block* block = nullptr;
  enum class State : std::uint8_t { ready, waiting, ended } state = State::ready;
  bool has_begun = false;
  Reason reason;
  const void* place = nullptr;  // of its last call of the executor
  Clocks clocks;
  std::vector<std::shared_ptr<Operation>> stores, copies;  // since the last commit
  std::deque<std::vector<std::shared_ptr<Operation>>> store_groups, copy_groups;
  std::uint64_t collected = 0;  // the result of a collective
  int cluster_round = 0;
  bool in_cluster_barrier = false;
  bool has_waited_for_cluster = false;
  bool has_fenced = false;  // __threadfence
  int unwritten_reads = 0;  // places that allow them
  std::uint64_t way = 0;    // since the lanes of its warp were together: waits, initialisations, copies
  SameStore same_store;
  bool has_waited_for_kernels = false;
  Clocks at_fence;
  Clocks before_fence;  // strict: what it acquires at its next fence

  /// What an atomic operation brings from those that released it.
  void acquire(const Clocks& released);
  Clock now() const { return clocks.seen[agent]; }
  void tick() { ++clocks.seen[agent]; }
  /// Goes a way of its own: the other lanes of its warp need not be where it is.
  void part(std::uint64_t why) { way = (way ^ why) * 0x9E3779B97F4A7C15ull; }
};

struct Barrier {
  std::uint32_t expected = 0;
  std::uint32_t pending = 0;
  std::int64_t bytes_to_come = 0;
  std::uint64_t phase = 0;
  std::uint64_t bytes_expected = 0, bytes_came = 0;  // in this phase
  bool init_fenced = false;
  Agent initialiser = 0;
  Clock initialised = 0;
  const void* place = nullptr;
  Clocks gathering, done;  // released by those who arrived in this phase; in the one before
  std::vector<Thread*> waiting;
};

struct NamedBarrier {
  int arrived = 0;
  int threads = 0;
  int votes = 0;  // of those who have come
  int voters = 0;
  int result_votes = 0;  // of the round before
  int result_voters = 0;
  Clocks clocks;
  std::vector<Thread*> waiting;
};

struct Collective;
/// What the lanes do when all have come.
using Finish = void (*)(const void* closure, Collective& all);
struct Collective {
  Collect kind{};
  unsigned mask = 0;
  unsigned arrived = 0;
  std::array<Thread*, 32> threads{};
  std::array<std::uint64_t, 32> values{};
  std::array<int, 32> arguments{};
  std::array<int, 32> widths{};
  std::array<const void*, 32> operands{};
  const void* place = nullptr;
  const void* closure = nullptr;  // of a lane that waits
  Finish finish = nullptr;
};

struct Warp {
  std::vector<Collective> open;
  unsigned ended = 0;     // lanes
  bool has_read = false;  // shared memory, since its last collective
  std::vector<Product> products;
  std::deque<std::vector<Product>> groups;
  int registers = 0;  // of each lane, at most
  bool wgmma_fenced = false;
  std::uint64_t group_way = 0;        // what its warpgroup executes together: wgmma and setmaxnreg, with their operands
  const void* group_place = nullptr;  // the last of them
  std::array<std::uint64_t, 3> wgmma_operands{};  // of the lane that came first
  int elected = 0;
  struct Comers {
    unsigned lanes = 0;
    std::uint64_t way = 0;  // of the first
  };
  std::array<Comers, 16> at_barrier;  // named barriers, whose instructions are of the whole warp

  /// A product under way; null: none is such a one.
  template <class Is>
  const Product* find_product(const Is& is) const {
    for (const auto& group : groups)
      for (const Product& one : group)
        if (is(one)) return &one;
    const auto found = std::ranges::find_if(products, is);
    return found == products.end() ? nullptr : &*found;
  }
};

struct Block {
  int rank = 0;
  Extent position;
  unsigned char* window = nullptr;
  Cells cells;  // of the window
  std::uint32_t used_cells = 0;
  std::map<std::uint32_t, Barrier> barriers;  // by address
  std::array<NamedBarrier, 16> named;
  std::vector<Warp> warps;
  int free_registers = 0;  // of each lane of a warp, that warps have given back
  std::vector<Thread*> waiting_for_registers;
  std::map<std::uint32_t, Clocks> atomics;                  // what was released at an address
  std::map<Agent, std::pair<Clock, const void*>> arrivals;  // the last one of each thread of another block
  std::vector<std::shared_ptr<Operation>> copies;           // of its shared memory, but for cp.async
  int live = 0;                                             // threads that have not ended
  bool lets_next_start = false;
};

/// A copy under way, which the scheduler lets read and write at steps of its own choice.
struct Operation {
  virtual ~Operation() = default;
  virtual void read() {}
  virtual void write() = 0;
  virtual std::string words() const = 0;

  Agent slot = 0;
  Clock clock = 0;
  const void* place = nullptr;
  bool has_read = false, is_complete = false;
  bool by_threads = false;                                             // cp.async: no other proxy
  bool writes_when_read = true;                                        // in one step: loads
  std::uint8_t swizzle = 0;                                            // Cell::swizzle of what it writes
  Block* source = nullptr;                                             // of shared memory that it reads
  Block* target = nullptr;                                             // of shared memory that it writes
  std::uint32_t barrier = 0;                                           // there; 0: none
  std::uint32_t barrier_bytes = 0;                                     // that complete on it
  std::vector<std::pair<std::uint32_t, std::uint32_t>> reads, writes;  // address and bytes
  std::vector<Thread*> waiting;
};

struct FixedShared {
  std::uint32_t at, bytes;
};

struct Launch {
  std::string where;
  Extent grid, block;
  std::size_t cluster = 1;
  std::uint32_t dynamic_bytes = 0;
  std::function<void()> body;
  std::vector<Block*> blocks;  // of the cluster that runs
  std::vector<Thread*> threads;
  std::vector<Thread*> ready;
  std::vector<std::shared_ptr<Operation>> flying;
  std::map<const void*, FixedShared> fixed;
  std::uint32_t fixed_end = 0;
  std::size_t agents = 0;
  std::size_t next_slot = 0;
  std::array<Clock, kSlots> slot_clocks{};
  std::size_t cluster_arrived = 0;
  int cluster_round = 0;
  Clocks cluster_clocks;
  std::vector<Thread*> cluster_waiting;
  std::size_t starved_warp = 0;
  int products = 0;  // of the tensor cores that have not ended
  bool dependent = false;
  std::vector<std::pair<Agent, Clock>> waits_for_kernels;  // by threads of the cluster
  bool others_ended = false;                               // the kernels before this one, for those behind it
  std::uint32_t cluster_number = 0;                        // in the grid
  std::vector<bool> clusters_seen;                         // that come before this one, by their number
  std::int64_t steps = 0;
  std::size_t polls = 0;  // since anything has happened: see poll()
  std::uint64_t in_vain = 0;
  std::uint64_t random_state = 0;
  bool stopped = false;

  std::uint64_t random();  // splitmix64
};

/// Ends a thread whose launch has stopped.
struct Stop {};

/// Whether the accesses that the compiler reports are a kernel's. Not while the executor is at work: it shares inline
/// functions of the standard library with kernels.
extern thread_local bool in_kernel;
/// Null while no kernel runs on this thread.
extern thread_local Launch* launch;
extern thread_local Thread* self;

void compare_same_store();
/// Stands first in every function that kernels call.
struct Entry {
  Entry() {
    in_kernel = false;
    if (self->same_store.to != nullptr) compare_same_store();
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() { in_kernel = true; }
};

const Options& options();
/// Of the launch that runs.
Schedule schedule();
/// Launches of one seed differ from each other.
std::uint64_t seed_of_next_launch();

// --- findings.cpp
std::string name_of(const Thread& thread);
std::string name_of(Agent agent);
void report(Rule rule, const std::string& text, const void* place);
/// For what leaves nothing to go on with.
[[noreturn]] void stop(Rule rule, const std::string& text, const void* place);
std::uint64_t findings_so_far();
/// The first finding behind number `count` in one line, for an error.
std::string findings_since(std::uint64_t count);

// --- scheduler.cpp
/// Runs the kernel that `body` calls for every thread of the grid.
void run(std::string_view where, const LaunchShape& shape, std::function<void()> body, const void* place = nullptr);
void wait(const Reason& reason);
void yield();
/// yield() for where nothing may be thrown.
void pause();
void wake(Thread& thread);
/// Ends the launch and does not return: the access that follows would end the program. Nothing is thrown, since the
/// compiler knows no landing pads at accesses.
void leave();
void fly(std::shared_ptr<Operation> operation);
void start_operation(Operation& operation, const void* place);
std::pair<Agent, Clock> take_slot();

// --- limits.cpp
inline std::size_t volume(const Extent& extent) { return std::size_t{extent.x} * extent.y * extent.z; }
/// What a Hopper refuses of a launch; empty: nothing.
std::string refused(const LaunchShape& shape);
// --- shadow.cpp
struct Place {
  Block* block = nullptr;  // null: not shared memory of the cluster
  std::uint32_t address = 0;
};
Place place_of(const void* pointer);
inline unsigned char* host_of(const Block& block, std::uint32_t address) { return block.window + address; }
/// "byte 128 of shared memory"
std::string spot(std::uint32_t address);
/// Who accesses: a thread, or a copy that it issues.
struct Accessor {
  const char* name;  // "it", "a tensor store"
  bool asynchronous = false;
  bool by_warp = false;     // stmatrix: one store of all lanes
  bool multiplies = false;  // wgmma: what it reads of one row changes one row of the product
  const void* place = nullptr;
};
bool check_read(Block& block, std::uint32_t at, std::uint32_t bytes, const Accessor& who);
bool check_write(Block& block, std::uint32_t at, std::uint32_t bytes, const Accessor& who);
void note_read(Block& block, std::uint32_t at, std::uint32_t bytes, Agent agent, Clock clock);
void note_write(Block& block, std::uint32_t at, std::uint32_t bytes, Agent agent, Clock clock, ByteState state,
                const void* place, std::uint8_t swizzle = 0);
bool inside_shared(const Block& block, std::uint32_t at, std::uint32_t bytes);
std::string shared_extent(std::uint32_t at, std::uint32_t bytes);
struct Access {
  bool writes = false;
  bool aligned = true;
  bool atomic = false;
  bool by_warp = false;
};
void access(const void* pointer, std::uint32_t bytes, const Access& how, const void* place);
/// Of the running thread, about to store to bytes that thread `by` has stored to by the same instruction.
void note_same_store(const void* to, std::uint32_t bytes, std::string_view where, Agent by, const void* place);

// --- memory.cpp
void* allocate(std::size_t bytes);
void release(void* memory);
bool is_global(const void* pointer);
/// Empty: these bytes lie in one allocation. Else what is wrong.
std::string outside_global(const void* pointer, std::size_t bytes);
unsigned char* shared_windows();

// --- global.cpp
/// What a thread, or a copy that it issues, does with global memory.
struct GlobalAccess {
  const char* name;  // "it", "a bulk load"
  bool writes = false;
  bool atomic = false;
  bool asynchronous = false;  // by the asynchronous proxy
  const void* place = nullptr;
  Agent agent = 0;
  Clock clock = 0;
};
void begin_kernel();
/// The kernels so far have ended for every one that follows.
void forget_kernels();
/// A step between kernels, which waits for those before it.
void note_memset(const void* pointer, std::size_t bytes);
void written_by_host(const void* pointer, std::size_t bytes);
/// The host is a program's of one's own, which waits for its copies: see host_step(). Else its data may be a kernel's.
void know_steps_of_host();
/// A copy, a memset or a wait of the host: a launch behind it waits for all kernels before it.
void host_step();
/// The kernel that runs has ended.
void end_kernel();
void note_global(const void* pointer, std::size_t bytes, const GlobalAccess& access);
void order_global_atomic(const void* pointer);

// --- barriers.cpp
std::string state_of(const Barrier& barrier);
/// What its phase still needs: ": 64 bytes are missing".
std::string missing_at(const Barrier& barrier);
void bytes_came(Block& block, std::uint32_t address, std::uint32_t bytes, Agent slot, Clock clock);
/// The barrier that a copy is to complete on, if it may.
void check_for_copy(Block& block, std::uint32_t address, const char* who, const void* place);
void leave_block_barrier(Block& block);
void end_cluster_round_if_complete();

// --- warp.cpp
/// Gathers the lanes of the mask; the last one to come calls finish().
void collect(Collect kind, unsigned mask, std::uint64_t value, int argument, int width, const void* operand,
             const void* place, const void* closure, Finish finish);
template <class Do>
void collect(Collect kind, unsigned mask, std::uint64_t value, int argument, int width, const void* operand,
             const void* place, const Do& finish) {
  collect(kind, mask, value, argument, width, operand, place, &finish,
          [](const void* closure, Collective& all) { (*static_cast<const Do*>(closure))(all); });
}
unsigned lanes_of_warp(int thread);
/// The running thread has ended: the other lanes do not wait for it.
void leave_warp();
/// Strict: says that lanes which come to an instruction of the whole warp have come by different ways.
void report_apart(const char* instruction, const void* place);
/// The warp executes an instruction of its warpgroup (PTX ISA "wgmma.mma_async", "setmaxnreg").
void note_group_step(Warp& warp, std::uint64_t operands, const void* place);
/// Says which warps have not executed those of their warpgroup.
void check_warpgroups(const Block& block);

// --- tensor_cores.cpp
/// Whether this is a register of accumulators that products are still adding to.
void check_accumulators(const void* pointer, bool writes, const void* place);
/// Says what products nobody has waited for.
void check_products_ended(Block& block);

}  // namespace tmaops::executor

/// The address behind the call of the executor: a line of the kernel, since the twins are inlined.
#define TMAOPS_PLACE __builtin_return_address(0)
