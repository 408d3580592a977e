// Global memory between kernels and between blocks: what a dependent kernel uses before it waits for the kernels in
// front of it (PTX ISA "griddepcontrol"), and, as an option, accesses of one launch that nothing orders (PTX ISA
// "Memory Consistency Model").
#include <unordered_map>

#include "executor/state.hpp"

namespace tmaops::executor {
namespace {

constexpr std::size_t kPageBytes = 4096;

template <class Cell, std::size_t bytes_each>
class Pages {
 public:
  Cell& operator[](std::uintptr_t address) {
    const std::uintptr_t number = address / kPageBytes;
    if (number != last_number_) {
      auto& page = pages_[number];
      if (!page) page = std::make_unique<Page>();
      last_number_ = number;
      last_ = page.get();
    }
    return (*last_)[address % kPageBytes / bytes_each];
  }
  /// Null where nobody has been.
  Cell* find(std::uintptr_t address) {
    const auto found = pages_.find(address / kPageBytes);
    return found == pages_.end() ? nullptr : &(*found->second)[address % kPageBytes / bytes_each];
  }

 private:
  using Page = std::array<Cell, kPageBytes / bytes_each>;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::uintptr_t last_number_ = 0;
  Page* last_ = nullptr;
};

constexpr std::uint32_t kMostKernels = (1u << 31) - 1;

/// The kernels_begun that used a word last. 0: none since the host wrote it.
struct Word {
  std::uint32_t written_in = 0;
  std::uint32_t read_in : 31 = 0;  // at most kMostKernels
  std::uint32_t by_copy : 1 = 0;
  const void* place = nullptr;  // of the write
};

/// Who used a byte last in a launch, 0 for none.
struct Byte {
  std::uint32_t launch = 0;
  std::uint32_t write_cluster = 0, read_cluster = 0;
  Clock write_clock = 0, read_clock = 0;
  Agent writer = 0, reader = 0;
  bool written = false, read = false, atomic = false;
  const void* write_place = nullptr;
};

struct Atomic {
  std::uint32_t launch = 0, cluster = 0;
  Clocks clocks;  // released by threads of that cluster
  std::vector<bool> clusters;
};

constexpr std::size_t kWordBytes = 4;
Pages<Word, kWordBytes> words;
Pages<Byte, 1> bytes_of_races;
std::unordered_map<std::uintptr_t, Atomic> atomics;
std::uint32_t kernels_begun = 0;  // of the process
/// The first launch that may still run when a dependent one begins. Behind the last one: none.
std::uint32_t first_open = 1;
bool knows_steps_of_host = false;

bool has_waited() {
  if (self->has_waited_for_kernels) return true;
  // Behind a barrier, what another thread has waited for is complete for this one, too.
  for (const auto& [agent, clock] : launch->waits_for_kernels)
    if (clock <= self->clocks.seen[agent]) self->has_waited_for_kernels = true;
  return self->has_waited_for_kernels;
}

/// A word that this launch has written before, by the other proxy or by a store that may still be under way.
void check_proxies(Word& word, const GlobalAccess& access) {
  const bool in_flight = word.by_copy != 0 && !access.writes;
  if (!in_flight && (word.by_copy != 0 || !access.asynchronous)) return;
  const std::string does = std::string(access.name) + (access.writes ? " writes" : " reads") + " global memory that ";
  const std::string by = source_line(word.place);
  if (in_flight)
    report(Rule::read_in_flight,
           does + "the store at " + by +
               " of this launch may still be writing: wait_stores_read() waits until it has read shared memory",
           access.place);
  else
    report(Rule::missing_proxy_fence,
           does + "this launch wrote by ordinary stores at " + by +
               ": fence_async_shared() is about shared memory alone, the next launch sees them",
           access.place);
  word.place = nullptr;  // said
}

/// What the host brought to a call of the library counts as the work of a kernel before: in a user's program it may be.
void check_dependence(std::uintptr_t begin, std::uintptr_t end, const GlobalAccess& access) {
  const bool may_use = !launch->dependent || has_waited();
  for (std::uintptr_t at = begin / kWordBytes * kWordBytes; at < end; at += kWordBytes) {
    Word& word = words[at];
    const auto used_by_open = [&](std::uint32_t number) { return number >= first_open && number < kernels_begun; };
    const bool meets = (word.written_in == 0 && !knows_steps_of_host) || used_by_open(word.written_in) ||
                       (access.writes && used_by_open(word.read_in));
    if (!may_use && meets) {
      report(
          Rule::not_waited_for_kernel,
          std::string(access.name) + (access.writes ? " writes" : " reads") +
              " global memory before wait_for_previous_kernel(): this launch is a dependent one, and a kernel before "
              "it may still use that memory",
          access.place);
      return;
    }
    if (word.written_in == kernels_begun && word.place != nullptr && !access.atomic) check_proxies(word, access);
    if (access.writes)
      word = {kernels_begun, word.read_in, access.asynchronous ? 1u : 0u, access.place};
    else
      word.read_in = kernels_begun & kMostKernels;
  }
}

std::string text_of(std::uint32_t cluster, Agent agent) {
  if (cluster == launch->cluster_number) return name_of(agent);
  return (launch->cluster > 1 ? "cluster " : "block ") + std::to_string(cluster) + " of the grid";
}

/// Whether what this agent did at that time comes before what the running thread does now.
bool ordered(std::uint32_t cluster, Agent agent, Clock clock, bool read) {
  if (cluster != launch->cluster_number) return launch->clusters_seen[cluster];
  const Clocks& by = self->clocks;
  return clock <= by.seen[agent] || (read && clock <= by.reads[agent]);
}

void check_races(std::uintptr_t begin, std::uintptr_t end, const GlobalAccess& access) {
  const auto say = [&](const char* did, std::uint32_t cluster, Agent agent, const void* place) {
    report(Rule::global_race,
           std::string(access.name) + (access.writes ? " writes" : " reads") + " global memory that " +
               text_of(cluster, agent) + did + (place == nullptr ? "" : " at " + source_line(place)) +
               " in the same launch, and nothing orders the two",
           access.place);
  };
  bool said = false;
  for (std::uintptr_t at = begin; at < end; ++at) {
    Byte& byte = bytes_of_races[at];
    if (byte.launch != kernels_begun) byte = {.launch = kernels_begun};
    // Lanes may write the same word by one instruction, as in shared memory.
    const bool same_store = access.writes && access.agent == self->agent && byte.write_place == access.place &&
                            byte.write_place != nullptr && byte.write_cluster == launch->cluster_number &&
                            !options().strict;
    if (same_store && byte.writer != access.agent && !ordered(byte.write_cluster, byte.writer, byte.write_clock, false))
      note_same_store(reinterpret_cast<const void*>(begin), static_cast<std::uint32_t>(end - begin), "global",
                      byte.writer, access.place);
    if (!said && byte.written && !(byte.atomic && access.atomic) && !same_store &&
        !ordered(byte.write_cluster, byte.writer, byte.write_clock, false)) {
      say(" has written", byte.write_cluster, byte.writer, byte.write_place);
      said = true;
    }
    if (!said && access.writes && byte.read && !ordered(byte.read_cluster, byte.reader, byte.read_clock, true)) {
      say(" has read", byte.read_cluster, byte.reader, nullptr);
      said = true;
    }
    if (access.writes) {
      byte.write_cluster = launch->cluster_number;
      byte.write_clock = access.clock;
      byte.writer = access.agent;
      byte.written = true;
      byte.atomic = access.atomic;
      byte.write_place = access.place;
    } else if (!access.atomic) {
      byte.read_cluster = launch->cluster_number;
      byte.read_clock = access.clock;
      byte.reader = access.agent;
      byte.read = true;
    }
  }
}

}  // namespace

void begin_kernel() {
  ++kernels_begun;
  if (!launch->dependent) first_open = kernels_begun;
}

// A kernel behind this one begins when each of its blocks has let it or has ended.
void end_kernel() {
  if (launch->others_ended) first_open = kernels_begun;
}

void forget_kernels() { first_open = kernels_begun + 1; }

void know_steps_of_host() { knows_steps_of_host = true; }
void host_step() {
  if (knows_steps_of_host) forget_kernels();
}

void note_memset(const void* pointer, std::size_t bytes) {
  forget_kernels();
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  for (std::uintptr_t at = begin / kWordBytes * kWordBytes; at < begin + bytes; at += kWordBytes)
    words[at] = {.written_in = std::max(1u, kernels_begun)};
}

void written_by_host(const void* pointer, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  for (std::uintptr_t at = begin / kWordBytes * kWordBytes; at < begin + bytes; at += kWordBytes)
    if (Word* word = words.find(at)) *word = {};
}

void note_global(const void* pointer, std::size_t bytes, const GlobalAccess& access) {
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  check_dependence(begin, begin + bytes, access);
  if (options().global_races) check_races(begin, begin + bytes, access);
}

void order_global_atomic(const void* pointer) {
  if (!options().global_races) return;
  Atomic& known = atomics[reinterpret_cast<std::uintptr_t>(pointer)];
  if (known.launch != kernels_begun) known = {.launch = kernels_begun, .clocks = {}, .clusters = {}};
  known.clusters.resize(launch->clusters_seen.size());
  const bool same_cluster = known.cluster == launch->cluster_number && !known.clocks.seen.empty();
  std::vector<bool>& seen = launch->clusters_seen;
  for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = seen[i] || known.clusters[i];
  if (same_cluster) self->acquire(known.clocks);
  if (!self->has_fenced) return;
  if (!same_cluster) known.clocks.reset(launch->agents);
  known.cluster = launch->cluster_number;
  known.clocks.join(self->at_fence);
  for (std::size_t i = 0; i < seen.size(); ++i) known.clusters[i] = known.clusters[i] || seen[i];
  known.clusters[launch->cluster_number] = true;
}

void wait_for_previous_kernel() {
  const Entry entry;
  self->has_waited_for_kernels = true;
  if (!self->block->lets_next_start) launch->others_ended = true;
  launch->waits_for_kernels.emplace_back(self->agent, self->now());
  self->tick();
}

void let_next_kernel_start() {
  const Entry entry;
  self->block->lets_next_start = true;
}

}  // namespace tmaops::executor
