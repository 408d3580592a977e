// mbarriers, and the barriers of a block and of a cluster (PTX ISA "mbarrier", "bar", "barrier.cluster").
#include <string>

#include "executor/polling.hpp"
#include "executor/state.hpp"

namespace tmaops::executor {
namespace {

constexpr std::uint64_t kTestCost = 16;  // in accesses: a kernel may test some thousand times before it waits
constexpr std::int64_t kMostBytes = (1 << 20) - 1;  // PTX ISA "Tracking asynchronous operations by the mbarrier object"
constexpr std::uint32_t kMostArrivals = (1 << 20) - 1;  // PTX ISA "Phase of the mbarrier object"

Place shared_place(const void* barrier, const char* what, const void* place) {
  const Place at = place_of(barrier);
  if (at.block == nullptr || !inside_shared(*at.block, at.address, 8))
    stop(Rule::outside_shared, std::string(what) + " of a barrier outside of shared memory", place);
  if (at.address % 8 != 0)
    stop(Rule::misaligned, std::string(what) + " of a barrier at " + spot(at.address) + ", which is no multiple of 8",
         place);
  return at;
}

Barrier& known_barrier(const Place& at, const char* what, const void* place) {
  const auto found = at.block->barriers.find(at.address);
  if (found == at.block->barriers.end())
    stop(Rule::barrier_not_initialised,
         std::string(what) + " of the barrier at " + spot(at.address) + ", which nobody has initialised", place);
  Barrier& barrier = found->second;
  // A relaxed arrival at the cluster's barrier is enough for a fenced initialisation (PTX ISA fence.mbarrier_init).
  const bool by_cluster = barrier.init_fenced && self->has_waited_for_cluster;
  if (barrier.initialised > self->clocks.seen[barrier.initialiser] && !by_cluster)
    report(Rule::barrier_not_initialised,
           std::string(what) + " of the barrier at " + spot(at.address) +
               ", and nothing orders it behind the initialisation by " + name_of(barrier.initialiser) + " at " +
               source_line(barrier.place),
           place);
  return barrier;
}

void end_phase_if_complete(Barrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes_to_come != 0) return;
  barrier.done = barrier.gathering;
  barrier.pending = barrier.expected;
  ++barrier.phase;
  barrier.bytes_expected = barrier.bytes_came = 0;
  for (Thread* thread : barrier.waiting) wake(*thread);
  barrier.waiting.clear();
}

void arrive_once(Barrier& barrier, std::uint32_t at, std::uint32_t expected_bytes, const void* place) {
  barrier.bytes_to_come += expected_bytes;
  barrier.bytes_expected += expected_bytes;
  if (barrier.bytes_to_come > kMostBytes)
    report(Rule::too_many_bytes,
           "the barrier at " + spot(at) + " expects " + std::to_string(barrier.bytes_to_come) +
               " bytes in one phase, at most " + std::to_string(kMostBytes) + " can be counted",
           place);
  if (barrier.pending == 0)
    stop(Rule::too_many_arrivals,
         "the barrier at " + spot(at) + " counts " + std::to_string(barrier.expected) +
             " arrivals and gets one more; it is in " + state_of(barrier),
         place);
  barrier.gathering.join(self->clocks);
  self->tick();
  --barrier.pending;
  end_phase_if_complete(barrier);
}

/// A named barrier counts warps: its instructions are `.aligned` (PTX ISA "bar").
void check_lanes(int id, const void* place) {
  Warp::Comers& comers =
      self->block->warps[static_cast<std::size_t>(self->index / 32)].at_barrier[static_cast<std::size_t>(id)];
  if (comers.lanes == 0) comers.way = self->way;
  if (comers.way != self->way) report_apart("a named barrier", place);
  comers.lanes |= 1u << (self->index % 32);
  if (comers.lanes == lanes_of_warp(self->index)) comers.lanes = 0;
}

const char* name_of_barrier(int id) { return id == 0 ? "__syncthreads" : "a named barrier"; }

void end_round(NamedBarrier& barrier) {
  for (Thread* thread : barrier.waiting) {
    thread->clocks.take(barrier.clocks, thread->agent);
    wake(*thread);
  }
  barrier.waiting.clear();
  barrier.arrived = 0;
  barrier.result_votes = std::exchange(barrier.votes, 0);
  barrier.result_voters = std::exchange(barrier.voters, 0);
  barrier.clocks.reset(launch->agents);
}

void come(int id, int threads, bool waits, const void* place) {
  self->place = place;
  NamedBarrier& barrier = self->block->named[static_cast<std::size_t>(id)];
  if (threads != 0) check_lanes(id, place);
  self->way = 0;
  if (barrier.clocks.seen.empty()) barrier.clocks.reset(launch->agents);
  if (threads % 32 != 0)
    report(
        Rule::collective,
        std::string(name_of_barrier(id)) + " is for " + std::to_string(threads) + " threads, which are no whole warps",
        place);
  if (barrier.arrived > 0 && barrier.threads != threads)
    report(Rule::collective,
           "barrier " + std::to_string(id) + " is used for " + std::to_string(barrier.threads) + " and for " +
               std::to_string(threads) + " threads in one round",
           place);
  barrier.threads = threads;
  barrier.clocks.join(self->clocks);
  self->tick();
  ++barrier.arrived;
  const int needed = threads == 0 ? self->block->live : threads;
  if (barrier.arrived >= needed) {
    if (waits) self->clocks.take(barrier.clocks, self->agent);
    end_round(barrier);
    return;
  }
  if (!waits) return;
  barrier.waiting.push_back(self);
  wait([id, &barrier, block = self->block] {
    return std::string(name_of_barrier(id)) + (id == 0 ? "" : " " + std::to_string(id)) + ", where " +
           std::to_string(barrier.arrived) + " of " +
           std::to_string(barrier.threads == 0 ? block->live : barrier.threads) + " threads have come";
  });
}

}  // namespace

std::string state_of(const Barrier& barrier) {
  return "phase " + std::to_string(barrier.phase) + " (parity " + std::to_string(barrier.phase & 1) + "), with " +
         std::to_string(barrier.expected - barrier.pending) + " of " + std::to_string(barrier.expected) +
         " arrivals and " + std::to_string(barrier.bytes_came) + " of " + std::to_string(barrier.bytes_expected) +
         " bytes";
}

std::string missing_at(const Barrier& barrier) {
  std::string text;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count != 0) text += (text.empty() ? ": " : " and ") + std::to_string(count) + what;
  };
  add(barrier.pending, barrier.pending == 1 ? " arrival is missing" : " arrivals are missing");
  add(std::max<std::int64_t>(0, barrier.bytes_to_come), " bytes are missing");
  add(std::max<std::int64_t>(0, -barrier.bytes_to_come), " bytes more came than it expects");
  // A wait for the parity of the phase that has ended returns at once; one for parity 1 does in the first phase, too.
  if (barrier.pending == barrier.expected && barrier.bytes_expected == 0 && barrier.bytes_came == 0)
    text += "; nothing has come in this phase, and a wait for parity " + std::to_string(1 - (barrier.phase & 1)) +
            " would have returned";
  return text;
}

void bytes_came(Block& block, std::uint32_t address, std::uint32_t bytes, Agent slot, Clock clock) {
  Barrier& barrier = block.barriers.at(address);
  barrier.bytes_to_come -= bytes;
  barrier.bytes_came += bytes;
  // A copy lets others know of its own bytes, not of what its issuer has stored before.
  Clock& known = barrier.gathering.seen[slot];
  known = std::max(known, clock);
  end_phase_if_complete(barrier);
}

void check_for_copy(Block& block, std::uint32_t address, const char* who, const void* place) {
  const Barrier& barrier = known_barrier({&block, address}, who, place);
  if (!barrier.init_fenced)
    report(Rule::missing_init_fence,
           std::string(who) + " completes on the barrier at " + spot(address) + ", which " +
               name_of(barrier.initialiser) + " initialised at " + source_line(barrier.place) +
               " without fence_barrier_init() after it",
           place);
}

void init_barrier(void* pointer, std::uint32_t arrivals) {
  const Entry entry;
  const void* const place = TMAOPS_PLACE;
  const Place at = shared_place(pointer, "initialisation", place);
  if (arrivals == 0 || arrivals > kMostArrivals)
    stop(Rule::too_many_arrivals,
         "a barrier counts 1 to " + std::to_string(kMostArrivals) + " arrivals, not " + std::to_string(arrivals),
         place);
  self->part(1);
  check_write(*at.block, at.address, 8, {.name = "an initialisation", .place = place});
  Barrier& barrier = at.block->barriers[at.address];
  barrier = {};
  barrier.expected = barrier.pending = arrivals;
  barrier.initialiser = self->agent;
  barrier.initialised = self->now();
  barrier.place = place;
  barrier.gathering.reset(launch->agents);
  barrier.done.reset(launch->agents);
  note_write(*at.block, at.address, 8, self->agent, self->now(), ByteState::barrier, place);
}

void fence_barrier_init() {
  const Entry entry;
  for (Block* block : launch->blocks)
    for (auto& [address, barrier] : block->barriers)
      if (barrier.initialiser == self->agent) barrier.init_fenced = true;
}

void arrive(void* pointer, std::uint32_t expected_bytes) {
  const Entry entry;
  const void* const place = self->place = TMAOPS_PLACE;
  const Place at = shared_place(pointer, "an arrival", place);
  arrive_once(known_barrier(at, "an arrival", place), at.address, expected_bytes, place);
}

void arrive_at(void* pointer, std::uint32_t rank) {
  const Entry entry;
  const void* const place = self->place = TMAOPS_PLACE;
  Place at = shared_place(pointer, "an arrival", place);
  if (rank >= launch->blocks.size())
    stop(Rule::collective,
         "an arrival in block " + std::to_string(rank) + " of a cluster of " + std::to_string(launch->cluster), place);
  at.block = launch->blocks[rank];
  if (at.block->live == 0)
    stop(Rule::ends_too_early, "an arrival in block " + std::to_string(rank) + " of the cluster, which has ended",
         place);
  if (at.block != self->block) at.block->arrivals[self->agent] = {self->now(), place};
  arrive_once(known_barrier(at, "an arrival", place), at.address, 0, place);
}

bool test_barrier(void* pointer, std::uint32_t parity) {
  const Entry entry;
  const void* const place = self->place = TMAOPS_PLACE;
  const Barrier& barrier = known_barrier(shared_place(pointer, "a test", place), "a test", place);
  self->part(self->agent + 2u);
  if ((barrier.phase & 1) != parity) {
    self->clocks.join(barrier.done);
    return true;
  }
  poll(
      kTestCost,
      [&] {
        return "it tests for parity " + std::to_string(parity) + " of the barrier again and again, which is in " +
               state_of(barrier) + missing_at(barrier);
      },
      place);
  return false;
}

void wait_barrier(void* pointer, std::uint32_t parity, const char* what, int stage) {
  const Entry entry;
  const void* const place = self->place = TMAOPS_PLACE;
  const Place at = shared_place(pointer, "a wait", place);
  Barrier& barrier = known_barrier(at, "a wait", place);
  self->part(self->agent + 2u);  // each lane leaves its loop by itself
  if (parity > 1) stop(Rule::collective, "a wait for parity " + std::to_string(parity) + ": it is 0 or 1", place);
  const auto name = [what, stage] {  // a WaitSite without words is called "barrier"
    return what == std::string_view("barrier")
               ? "the barrier"
               : "the barrier for " + std::string(what) + ", stage " + std::to_string(stage);
  };
  if (launch->random() % 4 == 0 && schedule() == Schedule::random) yield();
  const std::uint64_t phase = barrier.phase;
  while ((barrier.phase & 1) == parity) {
    if (barrier.phase != phase)
      report(Rule::phase_missed,
             name() + " went on from phase " + std::to_string(phase) + " to " + std::to_string(barrier.phase) +
                 " while this thread waited for the end of one",
             place);
    barrier.waiting.push_back(self);
    wait([&barrier, parity, name, at] {
      return "parity " + std::to_string(parity) + " of " + name() + " (" + spot(at.address) + "), which is in " +
             state_of(barrier) + missing_at(barrier);
    });
  }
  self->clocks.join(barrier.done);
}

void fence_async() {
  const Entry entry;
  self->clocks.fenced = self->clocks.seen;
  self->tick();
}

void block_barrier(int id, int threads, bool waits) {
  const Entry entry;
  come(id, threads, waits, TMAOPS_PLACE);
}

int block_vote(BlockVote how, bool value) {
  const Entry entry;
  NamedBarrier& barrier = self->block->named[0];
  barrier.votes += value ? 1 : 0;
  ++barrier.voters;
  come(0, 0, true, TMAOPS_PLACE);
  const int votes = barrier.result_votes;
  const int voters = barrier.result_voters;
  come(0, 0, true, TMAOPS_PLACE);  // nobody votes again before all have read the result
  switch (how) {
    case BlockVote::count:
      return votes;
    case BlockVote::all:
      return votes == voters ? 1 : 0;
    case BlockVote::any:
      return votes > 0 ? 1 : 0;
  }
  return 0;
}

void leave_block_barrier(Block& block) {
  for (NamedBarrier& barrier : block.named)
    if (barrier.threads == 0 && barrier.arrived > 0 && barrier.arrived >= block.live) end_round(barrier);
}

void cluster_arrive(bool orders_memory) {
  const Entry entry;
  const void* const place = self->place = TMAOPS_PLACE;
  if (self->in_cluster_barrier)
    report(Rule::collective, "it arrives at the cluster's barrier twice without a wait", place);
  self->in_cluster_barrier = true;
  self->cluster_round = launch->cluster_round;
  if (orders_memory) launch->cluster_clocks.join(self->clocks);
  self->tick();
  ++launch->cluster_arrived;
  end_cluster_round_if_complete();
}

void end_cluster_round_if_complete() {
  Launch& l = *launch;
  std::size_t live = 0;
  for (const Block* block : l.blocks) live += static_cast<std::size_t>(block->live);
  if (l.cluster_arrived == 0 || l.cluster_arrived + l.threads.size() - live < l.threads.size()) return;
  const auto is_missing = [&](const Thread* thread) {
    const bool has_come = thread->in_cluster_barrier && thread->cluster_round == l.cluster_round;
    return thread->state != Thread::State::ended && !has_come;
  };
  if (std::ranges::any_of(l.threads, is_missing)) return;
  l.cluster_arrived = 0;
  ++l.cluster_round;
  for (Thread* thread : l.cluster_waiting) wake(*thread);
  l.cluster_waiting.clear();
}

void cluster_wait() {
  const Entry entry;
  const void* const place = self->place = TMAOPS_PLACE;
  if (!self->in_cluster_barrier) report(Rule::collective, "it waits for the cluster without having arrived", place);
  while (launch->cluster_round == self->cluster_round) {
    launch->cluster_waiting.push_back(self);
    wait([] {
      return "the cluster's barrier, where " + std::to_string(launch->cluster_arrived) + " of " +
             std::to_string(launch->threads.size()) + " threads have come";
    });
  }
  self->in_cluster_barrier = false;
  self->has_waited_for_cluster = true;
  self->clocks.join(launch->cluster_clocks);
}

std::uint32_t cluster_rank() { return static_cast<std::uint32_t>(self->block->rank); }
std::uint32_t cluster_size() { return static_cast<std::uint32_t>(launch->cluster); }

}  // namespace tmaops::executor
