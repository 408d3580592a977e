// What each byte of shared memory holds, who wrote and read it when, and whether an access may follow.
#include <cstring>
#include <string>

#include "executor/polling.hpp"
#include "executor/state.hpp"

extern "C" {
extern const char __executable_start;
extern const char _end;
}

namespace tmaops::executor {
namespace {

std::string at_line(const void* place) { return place == nullptr ? "" : " at " + source_line(place); }

/// The copy that is writing this byte.
std::string copy_to(const Block& block, std::uint32_t at) {
  for (const auto& operation : launch->flying)
    if (operation->target == &block)
      for (const auto& [first, bytes] : operation->writes)
        if (at >= first && at < first + bytes) return operation->words() + ", issued" + at_line(operation->place);
  return "an asynchronous copy";
}

std::string reader_of(const Block& block, std::uint32_t at) {
  const auto within = [&](const auto& ranges) {
    return std::ranges::any_of(ranges,
                               [&](const auto& range) { return at >= range.first && at < range.first + range.second; });
  };
  for (const auto& operation : launch->flying)
    if (operation->source == &block && !operation->has_read && within(operation->reads))
      return operation->words() + ", issued" + at_line(operation->place) + ",";
  for (const Warp& warp : block.warps)
    if (const Product* product = warp.find_product([&](const Product& one) { return within(one.reads); }))
      return "a wgmma, issued" + at_line(product->place) + ",";
  return "an asynchronous copy or product";
}

std::string written_by(const Cell& cell) {
  return "written by " + name_of(cell.writer) + at_line(cell.write_place) + ", and nothing orders the two";
}

/// A call that is not inlined may return a struct to these bytes: the compiler has no hook for such a store.
bool returned_by_a_call(const Block& block, std::uint32_t at, std::uint32_t bytes) {
  for (std::uint32_t i = at; i < at + bytes; ++i)
    if (block.cells[i].state == ByteState::uninitialised && *host_of(block, i) != kUnwritten) return true;
  return false;
}

/// A reader that a write is not ordered behind.
const std::pair<Agent, Clock>* unordered_reader(const Cell& cell, const Clocks& by, std::pair<Agent, Clock>& single) {
  const auto unordered = [&](Agent agent, Clock clock) { return clock > by.seen[agent] && clock > by.reads[agent]; };
  if (unordered(cell.reader, cell.read_clock)) {
    single = {cell.reader, cell.read_clock};
    return &single;
  }
  if (cell.more_reads == 0) return nullptr;
  for (const auto& one : read_lists.all[cell.more_reads].readers)
    if (unordered(one.first, one.second)) return &one;
  return nullptr;
}

}  // namespace

std::string spot(std::uint32_t address) {
  const std::uint32_t at = address - kReservedBytes;
  if (at < launch->dynamic_bytes) return "byte " + std::to_string(at) + " of dynamic shared memory";
  for (const auto& [key, fixed] : launch->fixed)
    if (address >= fixed.at && address < fixed.at + fixed.bytes)
      return "byte " + std::to_string(address - fixed.at) + " of a block_shared of " + std::to_string(fixed.bytes) +
             " bytes";
  return "address " + std::to_string(address) + " of shared memory";
}

Place place_of(const void* pointer) {
  const auto offset = reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(shared_windows());
  const std::uintptr_t rank = offset / kWindowBytes;
  if (rank >= launch->blocks.size()) return {};
  return {launch->blocks[rank], static_cast<std::uint32_t>(offset % kWindowBytes)};
}

bool inside_shared(const Block&, std::uint32_t at, std::uint32_t bytes) {
  if (at < kReservedBytes) return false;
  if (at + bytes <= kReservedBytes + launch->dynamic_bytes) return true;
  for (const auto& [key, fixed] : launch->fixed)
    if (at >= fixed.at && at + bytes <= fixed.at + fixed.bytes) return true;
  return false;
}

std::string shared_extent(std::uint32_t at, std::uint32_t bytes) {
  FixedShared before{};  // the last variable that begins before `at`
  for (const auto& [key, fixed] : launch->fixed)
    if (fixed.at <= at && fixed.at > before.at) before = fixed;
  if (before.at != 0)
    return std::to_string(bytes) + " bytes at byte " + std::to_string(at - before.at) + " of a block_shared of " +
           std::to_string(before.bytes) + " bytes";
  return std::to_string(bytes) + " bytes at byte " + std::to_string(static_cast<std::int64_t>(at) - kReservedBytes) +
         ", of the " + std::to_string(launch->dynamic_bytes) +
         " bytes of dynamic shared memory that the launch asks for";
}

bool check_read(Block& block, std::uint32_t at, std::uint32_t bytes, const Accessor& who) {
  const Clocks& by = self->clocks;
  const Cell* before = nullptr;
  for (std::uint32_t i = at; i < at + bytes; i = block.cells.behind(i)) {
    const Cell& cell = block.cells[i];
    const bool same = before != nullptr && cell.has_write_of(*before);
    before = &cell;
    if (same) continue;
    const std::string_view name = who.name;
    switch (cell.state) {
      case ByteState::written:
      case ByteState::copied:
        if (cell.write_clock > by.seen[cell.writer]) {
          report(Rule::race, std::string(name) + " reads " + spot(i) + ", " + written_by(cell), who.place);
          return false;
        }
        if (who.asynchronous && cell.state == ByteState::written && cell.write_clock > by.fenced[cell.writer]) {
          report(Rule::missing_proxy_fence,
                 std::string(name) + " reads " + spot(i) + ", which " + name_of(cell.writer) +
                     " wrote by ordinary stores" + at_line(cell.write_place) +
                     ": there is no fence_async_shared() between the two",
                 who.place);
          return false;
        }
        break;
      case ByteState::uninitialised:
        if (self->unwritten_reads > 0 && (!who.asynchronous || who.multiplies)) break;
        if (returned_by_a_call(block, at, bytes)) break;
        report(Rule::uninitialised, std::string(name) + " reads " + spot(i) + ", which nothing has written", who.place);
        return false;
      case ByteState::in_flight:
        report(Rule::read_in_flight,
               std::string(name) + " reads " + spot(i) + " while it is being written by " + copy_to(block, i),
               who.place);
        return false;
      case ByteState::barrier:
        report(Rule::barrier_overwritten, std::string(name) + " reads the bytes of a barrier, " + spot(i), who.place);
        return false;
    }
  }
  return true;
}

bool check_write(Block& block, std::uint32_t at, std::uint32_t bytes, const Accessor& who) {
  const Clocks& by = self->clocks;
  const Cell* before = nullptr;
  for (std::uint32_t i = at; i < at + bytes; i = block.cells.behind(i)) {
    const Cell& cell = block.cells[i];
    const bool same = before != nullptr && cell.has_write_of(*before) && cell.has_readers_of(*before) &&
                      cell.write_place == before->write_place;
    before = &cell;
    if (same) continue;
    if (cell.state == ByteState::uninitialised && cell.readers_in_flight == 0 && cell.read_clock == 0) continue;
    const auto say = [&](Rule rule, const std::string& text) {
      report(rule, std::string(who.name) + " writes " + spot(i) + text, who.place);
      return false;
    };
    if (cell.state == ByteState::in_flight)
      return say(Rule::written_in_flight, " while it is being written by " + copy_to(block, i));
    if (cell.state == ByteState::barrier) return say(Rule::barrier_overwritten, ", which is an initialised barrier");
    if (cell.readers_in_flight != 0)
      return say(Rule::written_while_read, " while " + reader_of(block, i) + " still reads it");
    if (cell.write_clock > by.seen[cell.writer]) {
      // Lanes may write the same word by one instruction, where they write the same value.
      if (who.asynchronous || cell.write_place != who.place || (options().strict && !who.by_warp))
        return say(Rule::race, ", " + written_by(cell));
      note_same_store(host_of(block, at), bytes, "shared", cell.writer, who.place);
    }
    if (who.asynchronous && cell.state == ByteState::written && cell.write_clock > by.fenced[cell.writer])
      return say(Rule::missing_proxy_fence, ", which " + name_of(cell.writer) + " wrote before by ordinary stores" +
                                                at_line(cell.write_place) +
                                                ": there is no fence_async_shared() between the two");
    std::pair<Agent, Clock> single;
    if (const auto* reader = unordered_reader(cell, by, single))
      return say(Rule::race, ", which " + name_of(reader->first) + " has read, and nothing orders the two");
  }
  return true;
}

void note_same_store(const void* to, std::uint32_t bytes, std::string_view where, Agent by, const void* place) {
  SameStore& store = self->same_store;
  if (store.to != nullptr || bytes > store.before.size()) return;
  store = {.to = to, .bytes = bytes, .where = where, .by = by, .place = place};
  std::memcpy(store.before.data(), to, bytes);
}

void compare_same_store() {
  const SameStore store = std::exchange(self->same_store, {});
  if (std::memcmp(store.to, store.before.data(), store.bytes) == 0) return;
  const std::string at = store.where == "shared" ? spot(place_of(store.to).address) : "global memory";
  report(store.where == "shared" ? Rule::race : Rule::global_race,
         "it writes another value to " + at + " than " + name_of(store.by) +
             " by the same instruction, and nothing orders the two",
         store.place);
}

void Cells::split_chunk(std::uint32_t chunk) {
  if (std::exchange(is_split_[chunk], 1) != 0) return;
  const auto first = cells_.begin() + static_cast<std::ptrdiff_t>(chunk) * kChunk;
  std::fill_n(first + 1, kChunk - 1, *first);
}

void Cells::assign(std::uint32_t at, std::uint32_t bytes, const Cell& cell) {
  split(at, bytes);
  for (std::uint32_t i = at; i < at + bytes; i = behind(i)) {
    if (i % kChunk == 0 && i + kChunk <= at + bytes) is_split_[i / kChunk] = 0;
    cells_[i] = cell;
  }
}

std::uint32_t ReadLists::add(std::uint32_t bytes) {
  if (used == all.size()) all.emplace_back();
  all[used].bytes = bytes;
  all[used].readers.clear();
  return used++;
}

namespace {

/// Adds a reader to `count` bytes with the same readers, of which this is the first.
void add_reader(Cell& cell, std::uint32_t count, Agent agent, Clock clock) {
  // A read that this one is ordered behind need not be kept: who comes behind this one comes behind that, too.
  const bool ordered = self != nullptr && agent == self->agent;
  if (cell.read_clock == 0 || cell.reader == agent ||
      (ordered && cell.more_reads == 0 && cell.read_clock <= self->clocks.seen[cell.reader])) {
    cell.reader = agent;
    cell.read_clock = clock;
    return;
  }
  const std::uint32_t before = cell.more_reads;
  if (before == 0 || read_lists.all[before].bytes != count) {  // others have the list, too
    cell.more_reads = read_lists.add(count);
    if (before != 0) {
      read_lists.all[before].bytes -= count;
      read_lists.all[cell.more_reads].readers = read_lists.all[before].readers;
    }
  }
  auto& readers = read_lists.all[cell.more_reads].readers;
  const auto replaced = std::ranges::find_if(readers, [&](const auto& one) {
    return one.first == agent || (ordered && one.second <= self->clocks.seen[one.first]);
  });
  if (replaced == readers.end())
    readers.emplace_back(agent, clock);
  else
    *replaced = {agent, clock};
}

}  // namespace

void note_read(Block& block, std::uint32_t at, std::uint32_t bytes, Agent agent, Clock clock) {
  Cells& cells = block.cells;
  cells.split(at, bytes);
  for (std::uint32_t i = at, end = at; i < at + bytes; i = end) {
    for (end = cells.behind(i); end < at + bytes && cells[end].has_readers_of(cells[i]);) end = cells.behind(end);
    add_reader(cells[i], end - i, agent, clock);
    for (std::uint32_t other = cells.behind(i); other < end; other = cells.behind(other))
      cells[other].take_readers_of(cells[i]);
  }
}

void Cells::add_readers_in_flight(std::uint32_t at, std::uint32_t bytes, int more) {
  split(at, bytes);
  for (std::uint32_t i = at; i < at + bytes; i = behind(i))
    cells_[i].readers_in_flight = static_cast<std::uint8_t>(cells_[i].readers_in_flight + more);
}

void note_write(Block& block, std::uint32_t at, std::uint32_t bytes, Agent agent, Clock clock, ByteState state,
                const void* place, std::uint8_t swizzle) {
  Cells& cells = block.cells;
  Cell written{.write_place = place, .write_clock = clock, .writer = agent, .state = state, .swizzle = swizzle};
  bool is_read = false;
  for (std::uint32_t i = at; i < at + bytes; i = cells.behind(i)) is_read = is_read || cells[i].readers_in_flight != 0;
  if (!is_read) return cells.assign(at, bytes, written);
  cells.split(at, bytes);
  for (std::uint32_t i = at; i < at + bytes; i = cells.behind(i)) {
    written.readers_in_flight = cells[i].readers_in_flight;
    cells[i] = written;
  }
}

void access(const void* pointer, std::uint32_t bytes, const Access& how, const void* place) {
  const bool writes = how.writes;
  if (self->fiber.on_stack(pointer)) {
    if (launch->products != 0) check_accumulators(pointer, writes, place);
    return;
  }
  if (writes && !how.atomic)
    note_progress();
  else if (!how.atomic || !writes)
    count_access(pointer, place);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const char* does = writes ? "writes " : "reads ";
  const auto report_misaligned = [&](const std::string& what) {
    report(Rule::misaligned, "it " + std::string(does) + std::to_string(bytes) + " bytes at once at " + what, place);
  };
  const bool misaligned = how.aligned && address % bytes != 0;
  if (address - reinterpret_cast<std::uintptr_t>(shared_windows()) < kMostBlocks * kWindowBytes) {
    const Place at = place_of(pointer);
    if (at.block == nullptr || !inside_shared(*at.block, at.address, bytes)) {
      report(Rule::outside_shared, "it " + std::string(does) + shared_extent(at.address, bytes), place);
      return;
    }
    if (misaligned) report_misaligned(spot(at.address));
    const Accessor who{.name = "it", .by_warp = how.by_warp, .place = place};
    if (writes) {
      check_write(*at.block, at.address, bytes, who);
      note_write(*at.block, at.address, bytes, self->agent, self->now(), ByteState::written, place);
    } else {
      self->block->warps[static_cast<std::size_t>(self->index / 32)].has_read = true;
      check_read(*at.block, at.address, bytes, who);
      note_read(*at.block, at.address, bytes, self->agent, self->now());
    }
    return;
  }
  if (is_global(pointer)) {
    if (misaligned) report_misaligned("an address of global memory that is no multiple of that");
    if (const std::string wrong = outside_global(pointer, bytes); !wrong.empty())
      report(Rule::outside_global, "it " + std::string(does) + std::to_string(bytes) + " bytes, " + wrong, place);
    else
      note_global(pointer, bytes,
                  {.name = how.atomic ? "an atomic operation" : "it",
                   .writes = writes,
                   .atomic = how.atomic,
                   .place = place,
                   .agent = self->agent,
                   .clock = self->now()});
    return;
  }
  // Constants lie in the program itself.
  const bool of_program = address >= reinterpret_cast<std::uintptr_t>(&__executable_start) &&
                          address < reinterpret_cast<std::uintptr_t>(&_end);
  if (of_program && !writes) return;
  const bool of_other_thread =
      std::ranges::any_of(launch->threads, [&](const Thread* thread) { return thread->fiber.on_stack(pointer); });
  report(Rule::host_memory,
         "it " + std::string(does) + std::to_string(bytes) +
             (of_other_thread ? " bytes of another thread's registers or local memory"
              : of_program    ? " bytes of a variable of the program (__device__ variables are unknown to the executor)"
                              : " bytes that no kernel can reach"),
         place);
  leave();
}

}  // namespace tmaops::executor

// What -fsanitize=thread makes the compiler call at every access of a kernel. Nothing of the sanitizer itself is
// linked.
namespace {
inline void hook(void* pointer, unsigned long bytes, bool writes, bool aligned, const void* place) {
  if (!tmaops::executor::in_kernel) return;
  const tmaops::executor::Entry entry;
  tmaops::executor::access(pointer, static_cast<std::uint32_t>(bytes), {.writes = writes, .aligned = aligned}, place);
}
}  // namespace

#define TMAOPS_HOOK(name, bytes, writes, aligned) \
  void name(void* pointer) { hook(pointer, bytes, writes, aligned, __builtin_return_address(0)); }
extern "C" {
TMAOPS_HOOK(__tsan_read1, 1, false, true)
TMAOPS_HOOK(__tsan_read2, 2, false, true)
TMAOPS_HOOK(__tsan_read4, 4, false, true)
TMAOPS_HOOK(__tsan_read8, 8, false, true)
TMAOPS_HOOK(__tsan_read16, 16, false, true)
TMAOPS_HOOK(__tsan_write1, 1, true, true)
TMAOPS_HOOK(__tsan_write2, 2, true, true)
TMAOPS_HOOK(__tsan_write4, 4, true, true)
TMAOPS_HOOK(__tsan_write8, 8, true, true)
TMAOPS_HOOK(__tsan_write16, 16, true, true)
TMAOPS_HOOK(__tsan_unaligned_read2, 2, false, false)
TMAOPS_HOOK(__tsan_unaligned_read4, 4, false, false)
TMAOPS_HOOK(__tsan_unaligned_read8, 8, false, false)
TMAOPS_HOOK(__tsan_unaligned_read16, 16, false, false)
TMAOPS_HOOK(__tsan_unaligned_write2, 2, true, false)
TMAOPS_HOOK(__tsan_unaligned_write4, 4, true, false)
TMAOPS_HOOK(__tsan_unaligned_write8, 8, true, false)
TMAOPS_HOOK(__tsan_unaligned_write16, 16, true, false)
void __tsan_read_range(void* pointer, unsigned long bytes) {
  hook(pointer, bytes, false, false, __builtin_return_address(0));
}
void __tsan_write_range(void* pointer, unsigned long bytes) {
  hook(pointer, bytes, true, false, __builtin_return_address(0));
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
#undef TMAOPS_HOOK
