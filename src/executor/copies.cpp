// Bulk copies, st.async and cp.async (PTX ISA "cp.async.bulk", "st.async", "cp.async").
#include "executor/copies.hpp"

#include <cstring>

namespace tmaops::executor {
namespace {

constexpr int kGarbage = 0xA5;

struct BulkLoad : Operation {
  const void* from;
  std::uint32_t to, bytes;
  BulkLoad(const void* source_bytes, std::uint32_t destination, std::uint32_t count)
      : from(source_bytes), to(destination), bytes(count) {}
  void write() override { std::memcpy(host_of(*target, to), from, bytes); }
  std::string words() const override { return "a bulk load of " + std::to_string(bytes) + " bytes"; }
};

struct BulkStore : Operation {
  void* to;
  std::uint32_t from;
  std::vector<unsigned char> staged;
  BulkStore(void* destination, std::uint32_t source_address, std::uint32_t count)
      : to(destination), from(source_address), staged(count) {}
  void read() override { std::memcpy(staged.data(), host_of(*source, from), staged.size()); }
  void write() override { std::memcpy(to, staged.data(), staged.size()); }
  std::string words() const override { return "a bulk store of " + std::to_string(staged.size()) + " bytes"; }
};

struct AsyncStore : Operation {
  std::uint32_t to;
  std::array<unsigned char, 16> value{};
  int rank;
  AsyncStore(std::uint32_t destination, const void* bytes, int target_rank) : to(destination), rank(target_rank) {
    std::memcpy(value.data(), bytes, value.size());
  }
  void write() override { std::memcpy(host_of(*target, to), value.data(), value.size()); }
  std::string words() const override { return "a store_async to block " + std::to_string(rank); }
};

struct AsyncCopy : Operation {
  const void* from;
  std::uint32_t to, size, bytes;
  AsyncCopy(const void* source_bytes, std::uint32_t destination, std::uint32_t all, std::uint32_t copied)
      : from(source_bytes), to(destination), size(all), bytes(copied) {}
  void write() override {
    unsigned char* const destination = host_of(*target, to);
    if (bytes > 0) std::memcpy(destination, from, bytes);
    std::memset(destination + bytes, 0, size - bytes);
  }
  std::string words() const override { return "a cp.async of " + std::to_string(size) + " bytes"; }
};

Block& block_of_cluster(std::uint32_t rank, const char* who, const void* place) {
  if (rank >= launch->blocks.size())
    stop(Rule::collective,
         std::string(who) + " to block " + std::to_string(rank) + " of a cluster of " + std::to_string(launch->cluster),
         place);
  Block& block = *launch->blocks[rank];
  if (block.live == 0)
    stop(Rule::ends_too_early,
         std::string(who) + " to block " + std::to_string(rank) + " of the cluster, which has ended", place);
  return block;
}

using Groups = std::deque<std::vector<std::shared_ptr<Operation>>>;

/// Waits for all but the newest `left` groups, until they have been read or are complete.
void wait_for_groups(Groups& groups, int left, bool read_only, const char* what) {
  for (std::size_t g = 0; g + static_cast<std::size_t>(left) < groups.size(); ++g)
    for (const auto& operation : groups[g]) {
      while (read_only ? !operation->has_read : !operation->is_complete) {
        operation->waiting.push_back(self);
        wait([what, waited = operation.get()] {
          return std::string(what) + ": " + waited->words() + ", issued at " + source_line(waited->place);
        });
      }
      Clock& known = self->clocks.seen[operation->slot];
      known = std::max(known, operation->clock);
    }
  while (groups.size() > static_cast<std::size_t>(left)) groups.pop_front();
}

}  // namespace

Place shared_operand(const void* pointer, std::uint32_t alignment, const char* who, const void* place) {
  const Place at = place_of(pointer);
  if (at.block == nullptr)
    stop(Rule::outside_shared, std::string(who) + " with a pointer that is not to shared memory", place);
  if (at.address % alignment != 0)
    stop(Rule::misaligned,
         std::string(who) + " at " + spot(at.address) + ", address " + std::to_string(at.address) +
             ", which is no multiple of " + std::to_string(alignment),
         place);
  return at;
}

void check_global(const void* pointer, std::size_t bytes, std::uint32_t alignment, const char* who, const void* place) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignment != 0)
    stop(Rule::misaligned,
         std::string(who) + " with an address in global memory that is no multiple of " + std::to_string(alignment),
         place);
  if (const std::string wrong = outside_global(pointer, bytes); !wrong.empty())
    stop(Rule::outside_global, std::string(who) + " of " + std::to_string(bytes) + " bytes, " + wrong, place);
}

void use_global(const Operation& operation, const void* pointer, std::size_t bytes, bool writes, const char* who) {
  note_global(pointer, bytes,
              {.name = who,
               .writes = writes,
               .asynchronous = !operation.by_threads,
               .place = operation.place,
               .agent = operation.slot,
               .clock = operation.clock});
}

void begin_write(const Operation& operation, const char* who) {
  for (const auto& [at, bytes] : operation.writes) {
    if (!inside_shared(*operation.target, at, bytes))
      stop(Rule::outside_shared, std::string(who) + " writes " + shared_extent(at, bytes), operation.place);
    check_write(*operation.target, at, bytes,
                {.name = who, .asynchronous = !operation.by_threads, .place = operation.place});
    Cells& cells = operation.target->cells;
    cells.split(at, bytes);
    for (std::uint32_t i = at; i < at + bytes; i = cells.behind(i)) cells[i].state = ByteState::in_flight;
    std::memset(host_of(*operation.target, at), kGarbage, bytes);
  }
}

void begin_read(const Operation& operation, const char* who) {
  for (const auto& [at, bytes] : operation.reads) {
    if (!inside_shared(*operation.source, at, bytes))
      stop(Rule::outside_shared, std::string(who) + " reads " + shared_extent(at, bytes), operation.place);
    check_read(*operation.source, at, bytes, {.name = who, .asynchronous = true, .place = operation.place});
    operation.source->cells.add_readers_in_flight(at, bytes, 1);
  }
}

void issue_store(const std::shared_ptr<Operation>& operation) {
  self->stores.push_back(operation);
  fly(operation);
}

void bulk_load(void* to, const void* from, std::uint32_t bytes, void* barrier) {
  const Entry entry;
  static constexpr const char* kWho = "a bulk load";
  const void* const place = self->place = TMAOPS_PLACE;
  const Place destination = shared_operand(to, 16, kWho, place);
  const Place signal = shared_operand(barrier, 8, kWho, place);
  if (bytes % 16 != 0)
    stop(Rule::misaligned, "a bulk load of " + std::to_string(bytes) + " bytes, no multiple of 16", place);
  check_global(from, bytes, 16, kWho, place);
  check_for_copy(*signal.block, signal.address, kWho, place);
  const auto operation = std::make_shared<BulkLoad>(from, destination.address, bytes);
  start_operation(*operation, place);
  use_global(*operation, from, bytes, false, kWho);
  operation->target = destination.block;
  operation->writes = {{destination.address, bytes}};
  operation->barrier = signal.address;
  operation->barrier_bytes = bytes;
  begin_write(*operation, kWho);
  fly(operation);
}

void bulk_store(void* to, const void* from, std::uint32_t bytes) {
  const Entry entry;
  static constexpr const char* kWho = "a bulk store";
  const void* const place = self->place = TMAOPS_PLACE;
  const Place origin = shared_operand(from, 16, kWho, place);
  if (bytes % 16 != 0)
    stop(Rule::misaligned, "a bulk store of " + std::to_string(bytes) + " bytes, no multiple of 16", place);
  check_global(to, bytes, 16, kWho, place);
  const auto operation = std::make_shared<BulkStore>(to, origin.address, bytes);
  start_operation(*operation, place);
  use_global(*operation, to, bytes, true, kWho);
  operation->writes_when_read = false;
  operation->source = origin.block;
  operation->reads = {{origin.address, bytes}};
  begin_read(*operation, kWho);
  issue_store(operation);
}

void bulk_prefetch(const void* from, std::uint32_t bytes) {
  const Entry entry;
  const void* const place = self->place = TMAOPS_PLACE;
  if (bytes % 16 != 0)
    stop(Rule::misaligned, "a prefetch of " + std::to_string(bytes) + " bytes, no multiple of 16", place);
  check_global(from, bytes, 16, "a prefetch", place);
}

void store_async(void* to, const void* value, void* barrier, std::uint32_t rank) {
  const Entry entry;
  static constexpr const char* kWho = "a store_async";
  const void* const place = self->place = TMAOPS_PLACE;
  const Place destination = shared_operand(to, 16, kWho, place);
  const Place signal = shared_operand(barrier, 8, kWho, place);
  Block& block = block_of_cluster(rank, kWho, place);
  check_for_copy(block, signal.address, kWho, place);
  const auto operation = std::make_shared<AsyncStore>(destination.address, value, static_cast<int>(rank));
  start_operation(*operation, place);
  operation->target = &block;
  operation->writes = {{destination.address, 16}};
  operation->barrier = signal.address;
  operation->barrier_bytes = 16;
  begin_write(*operation, kWho);
  fly(operation);
}

void commit_stores() {
  const Entry entry;
  self->store_groups.push_back(std::exchange(self->stores, {}));
}

void wait_stores_read(int groups) {
  const Entry entry;
  self->place = TMAOPS_PLACE;
  wait_for_groups(self->store_groups, groups, true, "wait_stores_read");
}

void copy_async(void* to, const void* from, std::uint32_t size, std::uint32_t bytes) {
  const Entry entry;
  static constexpr const char* kWho = "a cp.async";
  const void* const place = self->place = TMAOPS_PLACE;
  const Place destination = shared_operand(to, size, kWho, place);
  if (bytes > size)
    stop(Rule::collective, "a cp.async of " + std::to_string(size) + " bytes is to read " + std::to_string(bytes),
         place);
  if (bytes > 0) check_global(from, bytes, size, kWho, place);
  const auto operation = std::make_shared<AsyncCopy>(from, destination.address, size, bytes);
  operation->by_threads = true;
  start_operation(*operation, place);
  if (bytes > 0) use_global(*operation, from, bytes, false, kWho);
  operation->target = destination.block;
  operation->writes = {{destination.address, size}};
  begin_write(*operation, kWho);
  self->copies.push_back(operation);
  fly(operation);
}

void commit_copies() {
  const Entry entry;
  self->copy_groups.push_back(std::exchange(self->copies, {}));
}

void wait_copies(int groups) {
  const Entry entry;
  self->place = TMAOPS_PLACE;
  wait_for_groups(self->copy_groups, groups, false, "wait_copies");
}

}  // namespace tmaops::executor
