// Lets one thread or copy go on at a time, in an order that follows from the seed.
#include <cstring>
#include <mutex>

#include "executor/polling.hpp"
#include "executor/state.hpp"

// What a kernel knows as threadIdx and so on. They do not change for a thread: the scheduler writes them at every
// switch.
tmaops::Extent tmaops_thread_index asm("threadIdx");
tmaops::Extent tmaops_block_index asm("blockIdx");
tmaops::Extent tmaops_block_size asm("blockDim");
tmaops::Extent tmaops_grid_size asm("gridDim");
extern const int tmaops_warp_size asm("warpSize");
const int tmaops_warp_size = 32;

namespace tmaops::executor {

thread_local bool in_kernel = false;
thread_local Launch* launch = nullptr;
thread_local Thread* self = nullptr;
ReadLists read_lists;

// Most of the time of kernels with many threads goes here.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
[[gnu::target_clones("avx512f", "avx2", "default")]]
#endif
void raise(Clock* to, const Clock* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = std::max(to[i], from[i]);
}

namespace {

constexpr std::uint64_t kStepsPerCopy = 8;  // random: one of so many steps is a copy's

Fiber scheduler;
std::vector<std::unique_ptr<Block>> block_pool;
std::vector<std::unique_ptr<Thread>> thread_pool;

void to_scheduler() { scheduler.switch_from(self->fiber); }

/// A copy reads and writes at the next two steps that it gets, or at one.
void step(const std::shared_ptr<Operation>& operation) {
  const auto wake_all = [&] {
    for (Thread* thread : operation->waiting) wake(*thread);
    operation->waiting.clear();
  };
  if (!operation->has_read) {
    operation->read();
    operation->has_read = true;
    for (const auto& [at, bytes] : operation->reads) {
      operation->source->cells.add_readers_in_flight(at, bytes, -1);
      note_read(*operation->source, at, bytes, operation->slot, operation->clock);
    }
    wake_all();
    if (!operation->writes_when_read) return;
  }
  operation->write();
  operation->is_complete = true;
  note_progress();
  for (const auto& [at, bytes] : operation->writes)
    note_write(*operation->target, at, bytes, operation->slot, operation->clock,
               operation->by_threads ? ByteState::written : ByteState::copied, operation->place, operation->swizzle);
  if (operation->barrier != 0)
    bytes_came(*operation->target, operation->barrier, operation->barrier_bytes, operation->slot, operation->clock);
  wake_all();
}

void step_of_any_copy() {
  auto& flying = launch->flying;
  const std::size_t i = launch->random() % flying.size();
  const std::shared_ptr<Operation> operation = flying[i];
  step(operation);
  if (!operation->is_complete) return;
  flying[i] = flying.back();
  flying.pop_back();
}

/// Says what no thread of the block has waited for, whether or not it is over by now.
void check_end(Block& block) {
  const auto is_known = [&](Agent by, Clock when) {
    return std::ranges::any_of(launch->threads, [&](const Thread* thread) {
      return thread->block == &block && thread->clocks.seen[by] >= when;
    });
  };
  for (const auto& copy : block.copies)
    if (!is_known(copy->slot, copy->clock))
      report(Rule::ends_too_early,
             "its block may end while " + copy->words() + " still " + (copy->source == &block ? "reads" : "writes") +
                 " its shared memory: nothing in it has waited for that",
             copy->place);
  for (const auto& [agent, arrival] : block.arrivals)
    if (!is_known(agent, arrival.first))
      report(Rule::ends_too_early,
             "its block may end before " + name_of(agent) + " arrives at a barrier in it: nothing orders the two",
             arrival.second);
  check_products_ended(block);
  check_warpgroups(block);
}

void thread_main() {
  Fiber::entered();
  for (;;) {
    self->has_begun = true;
    try {
      in_kernel = true;
      launch->body();
    } catch (const Stop&) {
    }
    in_kernel = false;
    if (self->same_store.to != nullptr) compare_same_store();
    self->state = Thread::State::ended;
    if (!launch->stopped) {
      --self->block->live;
      if (self->block->live == 0) check_end(*self->block);
      leave_block_barrier(*self->block);
      leave_warp();
      end_cluster_round_if_complete();
    }
    to_scheduler();
  }
}

void prepare_block(Block& block, std::size_t rank, const Extent& first) {
  const Launch& l = *launch;
  const std::size_t threads = volume(l.block);
  block.rank = static_cast<int>(rank);
  block.position = {first.x + static_cast<unsigned>(rank), first.y, first.z};
  block.window = shared_windows() + rank * kWindowBytes;
  block.cells.resize(kWindowBytes);
  block.cells.assign(0, std::max(block.used_cells, l.fixed_end), {});
  block.used_cells = l.fixed_end;
  block.barriers.clear();
  block.atomics.clear();
  block.arrivals.clear();
  block.copies.clear();
  block.named = {};
  const std::size_t warps = (threads + 31) / 32;
  // The most a thread can have. nvcc may give less, but not to a kernel with __launch_bounds__ and setmaxnreg.
  const std::size_t registers = std::min<std::size_t>(256, kRegisters / 32 / warps / 8 * 8);
  block.warps.assign(warps, {});
  for (Warp& warp : block.warps) warp.registers = static_cast<int>(registers);
  block.free_registers = 0;
  block.live = static_cast<int>(threads);
  block.lets_next_start = false;
  std::memset(block.window + kReservedBytes, kUnwritten, l.fixed_end - kReservedBytes);
}

void prepare_thread(Thread& thread, Block& block, std::size_t index) {
  const Launch& l = *launch;
  thread.index = static_cast<int>(index);
  thread.agent = static_cast<Agent>(static_cast<std::size_t>(block.rank) * volume(l.block) + index);
  const auto at = static_cast<unsigned>(index);
  thread.position = {at % l.block.x, at / l.block.x % l.block.y, at / (l.block.x * l.block.y)};
  thread.block = &block;
  thread.state = Thread::State::ready;
  thread.has_begun = false;
  thread.reason = {};
  thread.clocks.reset(l.agents);
  thread.tick();
  thread.stores.clear();
  thread.copies.clear();
  thread.store_groups.clear();
  thread.copy_groups.clear();
  thread.in_cluster_barrier = thread.has_waited_for_cluster = thread.has_fenced = false;
  thread.has_waited_for_kernels = false;
  thread.before_fence.seen.clear();
  thread.cluster_round = thread.unwritten_reads = 0;
  thread.way = 0;
  thread.same_store = {};
  thread.fiber.start(&thread_main);
}

void prepare_cluster(const Extent& first) {
  Launch& l = *launch;
  const std::size_t threads = volume(l.block);
  l.blocks.clear();
  l.threads.clear();
  l.flying.clear();
  l.ready.clear();
  read_lists.clear();
  l.slot_clocks = {};
  l.next_slot = l.cluster_arrived = 0;
  l.products = 0;
  l.cluster_round = 0;
  l.cluster_clocks.reset(l.agents);
  l.cluster_waiting.clear();
  l.waits_for_kernels.clear();
  l.clusters_seen.assign(l.clusters_seen.size(), false);
  while (block_pool.size() < l.cluster) block_pool.push_back(std::make_unique<Block>());
  while (thread_pool.size() < l.cluster * threads) thread_pool.push_back(std::make_unique<Thread>());
  for (std::size_t rank = 0; rank < l.cluster; ++rank) {
    Block& block = *block_pool[rank];
    l.blocks.push_back(&block);
    prepare_block(block, rank, first);
    for (Warp& warp : block.warps) warp.elected = static_cast<int>(l.random() % 32);
    for (std::size_t i = 0; i < threads; ++i) {
      Thread& thread = *thread_pool[rank * threads + i];
      prepare_thread(thread, block, i);
      l.threads.push_back(&thread);
      l.ready.push_back(&thread);
    }
  }
  l.starved_warp = l.random() % ((l.threads.size() + 31) / 32);
}

Thread* take_ready() {
  auto& ready = launch->ready;
  std::size_t i = 0;
  if (schedule() == Schedule::eager) {
    Thread* thread = ready.front();
    ready.erase(ready.begin());
    return thread;
  }
  i = launch->random() % ready.size();
  if (schedule() == Schedule::starving && !all_poll()) {
    const auto starves = [&](const Thread* thread) { return std::size_t{thread->agent} / 32 == launch->starved_warp; };
    for (std::size_t tried = 0; tried < ready.size() && starves(ready[i]); ++tried) i = (i + 1) % ready.size();
  }
  Thread* thread = ready[i];
  ready[i] = ready.back();
  ready.pop_back();
  return thread;
}

void report_deadlock() {
  // Waits for the parity of a barrier stand before __syncwarp, which waits for lanes that wait for something else.
  std::map<std::string, std::pair<int, const Thread*>, std::greater<>> kinds;
  for (const Thread* thread : launch->threads) {
    if (thread->state != Thread::State::waiting) continue;
    auto& [threads, first] = kinds[thread->reason() + ", at " + source_line(thread->place)];
    if (threads++ == 0) first = thread;
  }
  std::string text = "no thread can go on, and no copy is under way";
  const auto ended = std::ranges::count(launch->threads, Thread::State::ended, &Thread::state);
  if (ended > 0)
    text += "; " + std::to_string(ended) + " of " + std::to_string(launch->threads.size()) + " threads have ended";
  for (const auto& [reason, threads] : kinds)
    text += "\n    " + std::to_string(threads.first) + (threads.first == 1 ? " thread" : " threads, the first") + " (" +
            name_of(*threads.second) + "), waiting for " + reason;
  report(Rule::never_completes, text, kinds.empty() ? nullptr : kinds.begin()->second.second->place);
}

void go_on(Thread& thread) {
  self = &thread;
  begin_turn();
  tmaops_thread_index = thread.position;
  tmaops_block_index = thread.block->position;
  thread.fiber.switch_from(scheduler);
  self = nullptr;
}

/// Lets the threads of a launch that has stopped leave their functions.
void end_threads() {
  for (Thread* thread : launch->threads)
    if (thread->has_begun && thread->state != Thread::State::ended) go_on(*thread);
}

void run_cluster(const Extent& first) {
  Launch& l = *launch;
  prepare_cluster(first);
  while (!l.stopped) {
    const bool idle = l.ready.empty() || all_poll();
    const bool copies_wait = schedule() != Schedule::random && !idle;
    if (!l.flying.empty() && !copies_wait && (idle || l.random() % kStepsPerCopy == 0)) {
      step_of_any_copy();
      continue;
    }
    if (l.ready.empty()) break;
    ++l.steps;
    go_on(*take_ready());
  }
  if (!l.stopped &&
      std::ranges::any_of(l.threads, [](const Thread* t) { return t->state == Thread::State::waiting; })) {
    report_deadlock();
    l.stopped = true;
  }
  if (l.stopped) end_threads();
}

}  // namespace

std::uint64_t Launch::random() {
  std::uint64_t z = random_state += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

void wake(Thread& thread) {
  if (thread.state != Thread::State::waiting) return;
  note_progress();
  thread.state = Thread::State::ready;
  launch->ready.push_back(&thread);
}

void wait(const Reason& reason) {
  self->reason = reason;
  self->state = Thread::State::waiting;
  launch->in_vain = 0;  // it no longer looks
  to_scheduler();
  if (launch->stopped) throw Stop{};
}

void leave() {
  launch->stopped = true;
  self->state = Thread::State::ended;
  to_scheduler();
}

void yield() {
  launch->ready.push_back(self);
  to_scheduler();
  if (launch->stopped) throw Stop{};
}

void pause() {
  launch->ready.push_back(self);
  to_scheduler();
  if (launch->stopped) leave();
}

std::pair<Agent, Clock> take_slot() {
  const std::size_t slot = launch->next_slot;
  launch->next_slot = (slot + 1) % kSlots;
  return {static_cast<Agent>(launch->threads.size() + slot), ++launch->slot_clocks[slot]};
}

void start_operation(Operation& operation, const void* place) {
  std::tie(operation.slot, operation.clock) = take_slot();
  operation.place = place;
  if (!operation.by_threads) self->part(1);
}

void fly(std::shared_ptr<Operation> operation) {
  if (!operation->by_threads) (operation->source ? operation->source : operation->target)->copies.push_back(operation);
  if (schedule() == Schedule::eager)
    while (!operation->is_complete) step(operation);
  else
    launch->flying.push_back(std::move(operation));
}

void run(std::string_view where, const LaunchShape& shape, std::function<void()> body, const void* place) {
  static std::mutex one_at_a_time;
  const std::scoped_lock lock(one_at_a_time);
  Launch l;
  l.where = where;
  l.grid = shape.grid;
  l.block = shape.block;
  l.cluster = std::max(1u, shape.cluster);
  l.dynamic_bytes = static_cast<std::uint32_t>(shape.shared_bytes);
  l.fixed_end = kReservedBytes + l.dynamic_bytes;
  l.body = std::move(body);
  l.agents = volume(l.block) * l.cluster + kSlots;
  l.random_state = seed_of_next_launch();
  l.dependent = shape.dependent;
  l.clusters_seen.resize(volume(l.grid) / l.cluster);
  launch = &l;
  if (const std::string wrong = refused(shape); !wrong.empty()) {
    report(Rule::bad_launch, wrong, place);
    launch = nullptr;
    return;
  }
  scheduler.adopt_stack();
  begin_kernel();
  tmaops_block_size = l.block;
  tmaops_grid_size = l.grid;
  for (unsigned z = 0; z < l.grid.z; ++z)
    for (unsigned y = 0; y < l.grid.y; ++y)
      for (unsigned x = 0; x < l.grid.x && !l.stopped; x += static_cast<unsigned>(l.cluster), ++l.cluster_number)
        run_cluster({x, y, z});
  end_kernel();
  launch = nullptr;
  self = nullptr;
}

void trap() {
  const Entry entry;
  stop(Rule::trap, "the kernel ends itself", TMAOPS_PLACE);
}

}  // namespace tmaops::executor
