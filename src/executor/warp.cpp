// What the lanes of a warp do together: shuffles, votes, reductions (PTX ISA "shfl.sync", "vote.sync", "redux.sync").
#include <limits>
#include <string>

#include "executor/state.hpp"

namespace tmaops::executor {
namespace {

const char* name_of(Collect kind) {
  switch (kind) {
    case Collect::sync:
      return "__syncwarp";
    case Collect::shuffle:
    case Collect::shuffle_up:
    case Collect::shuffle_down:
    case Collect::shuffle_xor:
      return "a shuffle";
    case Collect::ballot:
      return "a vote";
    case Collect::sum:
    case Collect::least_signed:
    case Collect::most_signed:
    case Collect::least:
    case Collect::most:
    case Collect::all_bits:
    case Collect::any_bits:
    case Collect::odd_bits:
      return "a reduction";
    case Collect::elect:
      return "elect_one";
    case Collect::registers:
      return "setmaxnreg";
    case Collect::multiply_add:
      return "multiply_add";
    case Collect::load_matrices:
      return "load_matrices";
    case Collect::store_matrices:
      return "store_matrices";
    case Collect::products:
      return "a wgmma instruction";
  }
  return "?";
}

Warp& warp_of(Thread& thread) { return thread.block->warps[static_cast<std::size_t>(thread.index / 32)]; }

std::string hex_mask(unsigned mask) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[mask >> shift & 15u];
  return text;
}

template <class Do>
void for_each_lane(const Collective& all, const Do& visit) {
  for (std::size_t lane = 0; lane < 32; ++lane)
    if (all.threads[lane] != nullptr) visit(lane, *all.threads[lane]);
}

/// __syncwarp orders memory. What the others return depends on what the lanes have read before, so these reads are
/// over.
void order(const Collective& all) {
  if (all.kind == Collect::sync) {
    static Clocks joined;
    joined.reset(launch->agents);
    for_each_lane(all, [&](std::size_t, const Thread& thread) { joined.join(thread.clocks); });
    for_each_lane(all, [&](std::size_t, Thread& thread) {
      thread.clocks = joined;
      thread.tick();
    });
    return;
  }
  if (options().strict) return;  // PTX promises no order of memory
  Warp& warp = warp_of(*self);
  if (!std::exchange(warp.has_read, false)) return;
  static std::vector<Clock> over;
  over.assign(launch->agents, 0);
  for_each_lane(all, [&](std::size_t, const Thread& thread) {
    Clocks::raise(over, thread.clocks.reads);
    over[thread.agent] = std::max(over[thread.agent], thread.now());
  });
  for_each_lane(all, [&](std::size_t, Thread& thread) {
    Clocks::raise(thread.clocks.reads, over);
    thread.tick();
  });
}

std::size_t source_lane(const Collective& all, std::size_t lane) {
  const auto at = static_cast<int>(lane);
  const int width = all.widths[lane];
  const int argument = all.arguments[lane];
  const int group = at / width * width;
  int from = at;
  if (all.kind == Collect::shuffle) from = group + ((argument % width) + width) % width;
  if (all.kind == Collect::shuffle_up && at - argument >= group) from = at - argument;
  if (all.kind == Collect::shuffle_down && at + argument < group + width) from = at + argument;
  if (all.kind == Collect::shuffle_xor && (at ^ argument) < group + width) from = at ^ argument;
  return static_cast<std::size_t>(from);
}

std::uint64_t reduced(const Collective& all) {
  std::uint64_t result = 0;
  bool first = true;
  for_each_lane(all, [&](std::size_t lane, const Thread&) {
    const std::uint64_t value = all.values[lane];
    const auto word = static_cast<std::uint32_t>(value);
    const auto number = static_cast<std::int32_t>(word);
    const auto so_far = static_cast<std::int32_t>(static_cast<std::uint32_t>(result));
    if (all.kind == Collect::ballot) result |= std::uint64_t{value != 0} << lane;
    if (all.kind == Collect::sum) result = static_cast<std::uint32_t>(result + value);
    if (all.kind == Collect::all_bits) result = first ? word : result & word;
    if (all.kind == Collect::any_bits) result |= word;
    if (all.kind == Collect::odd_bits) result ^= word;
    if (all.kind == Collect::least) result = first ? word : std::min(static_cast<std::uint32_t>(result), word);
    if (all.kind == Collect::most) result = std::max(static_cast<std::uint32_t>(result), word);
    if (all.kind == Collect::least_signed)
      result = static_cast<std::uint32_t>(first ? number : std::min(so_far, number));
    if (all.kind == Collect::most_signed)
      result = static_cast<std::uint32_t>(first ? number : std::max(so_far, number));
    first = false;
  });
  return result;
}

/// Instructions with `.aligned` (PTX ISA "wgmma.mma_async", "ldmatrix", "setmaxnreg").
bool needs_lanes_together(Collect kind) {
  return kind == Collect::registers || kind == Collect::multiply_add || kind == Collect::load_matrices ||
         kind == Collect::store_matrices || kind == Collect::products;
}

/// The lanes have come together.
void gather(const Collective& all, const void* place) {
  if (needs_lanes_together(all.kind)) {
    std::uint64_t first = 0;
    bool differ = false;
    int lanes = 0;
    for_each_lane(all, [&](std::size_t, const Thread& thread) {
      if (lanes++ == 0) first = thread.way;
      differ = differ || thread.way != first;
    });
    if (differ) report_apart(name_of(all.kind), place);
  }
  for_each_lane(all, [](std::size_t, Thread& thread) { thread.way = 0; });
}

/// The lanes of the mask that have not ended; for an instruction of the whole warp all of them.
unsigned needed_lanes(const Collective& all) {
  const unsigned needed = all.mask & lanes_of_warp(self->index);
  return needs_lanes_together(all.kind) ? needed : needed & ~warp_of(*self).ended;
}

void complete(std::vector<Collective>& open, std::vector<Collective>::iterator found) {
  Collective all = *found;
  open.erase(found);
  gather(all, all.place);
  all.finish(all.closure, all);
  for_each_lane(all, [&](std::size_t, Thread& other) { wake(other); });
}

void finish(const Collective& all, const void* place) {
  order(all);
  const bool shuffles = all.kind == Collect::shuffle || all.kind == Collect::shuffle_up ||
                        all.kind == Collect::shuffle_down || all.kind == Collect::shuffle_xor;
  const std::uint64_t common = shuffles ? 0 : reduced(all);
  for_each_lane(all, [&](std::size_t lane, Thread& thread) {
    thread.collected = common;
    if (all.kind == Collect::elect) {
      const unsigned lanes = all.arrived;
      auto elected = static_cast<unsigned>(warp_of(thread).elected);
      while ((lanes >> elected & 1u) == 0) elected = (elected + 1) % 32;
      thread.collected = lane == elected ? 1 : 0;
    }
    if (!shuffles) return;
    const std::size_t from = source_lane(all, lane);
    if (all.threads[from] == nullptr)
      report(Rule::collective,
             "lane " + std::to_string(lane) + " shuffles from lane " + std::to_string(from) + ", which takes no part",
             place);
    thread.collected = all.values[from];
  });
}

/// All lanes are at a setmaxnreg; note_group_step() tells their warpgroup.
Warp& come_for_registers(int registers, const void* place) {
  Warp& warp = warp_of(*self);
  collect(Collect::registers, ~0u, 0, registers, 32, nullptr, place,
          [&](Collective&) { note_group_step(warp, static_cast<std::uint64_t>(registers), place); });
  return warp;
}

}  // namespace

unsigned lanes_of_warp(int thread) {
  const Extent& block = launch->block;
  const int threads = static_cast<int>(block.x * block.y * block.z);
  const int first = thread / 32 * 32;
  return first + 32 <= threads ? ~0u : (1u << (threads - first)) - 1;
}

void leave_warp() {
  Warp& warp = warp_of(*self);
  warp.ended |= 1u << (self->index % 32);
  const auto complete_now = [](const Collective& one) { return one.arrived == needed_lanes(one); };
  for (auto found = std::ranges::find_if(warp.open, complete_now); found != warp.open.end();
       found = std::ranges::find_if(warp.open, complete_now))
    complete(warp.open, found);
}

void report_apart(const char* instruction, const void* place) {
  if (!options().strict) return;  // nvcc brings lanes together where a branch or a loop ends
  report(Rule::lanes_apart,
         std::string("lanes of a warp come to ") + instruction +
             " by different ways: since they were together each has waited for a barrier, or some have initialised one "
             "or issued a copy, and there is no __syncwarp() behind it",
         place);
}

void note_group_step(Warp& warp, std::uint64_t operands, const void* place) {
  warp.group_way = (warp.group_way ^ operands) * 0x9E3779B97F4A7C15ull + 1;
  warp.group_place = place;
}

void check_warpgroups(const Block& block) {
  for (std::size_t first = 0; first < block.warps.size(); first += 4)
    for (std::size_t other = first + 1; other < first + 4; ++other) {
      const Warp& warp = block.warps[first];
      const Warp none;
      const Warp& next = other < block.warps.size() ? block.warps[other] : none;
      if (warp.group_way == next.group_way) continue;
      report(Rule::collective,
             "warps " + std::to_string(first) + " and " + std::to_string(other) +
                 " are of one warpgroup and have not executed the same wgmma and setmaxnreg instructions with the same "
                 "operands",
             warp.group_place != nullptr ? warp.group_place : next.group_place);
      break;
    }
}

void collect(Collect kind, unsigned mask, std::uint64_t value, int argument, int width, const void* operand,
             const void* place, const void* closure, Finish finish_all) {
  Thread& thread = *self;
  thread.place = place;
  const auto lane = static_cast<std::size_t>(thread.index % 32);
  if ((mask >> lane & 1u) == 0)
    stop(Rule::collective,
         "lane " + std::to_string(lane) + " calls " + name_of(kind) + " with the mask " + hex_mask(mask) +
             ", which leaves it out",
         place);
  auto& open = warp_of(thread).open;
  auto found = std::ranges::find_if(open, [&](const Collective& one) {
    return one.kind == kind && one.mask == mask && (one.arrived >> lane & 1u) == 0;
  });
  if (found == open.end()) {
    open.push_back({.kind = kind, .mask = mask});
    found = open.end() - 1;
  }
  found->arrived |= 1u << lane;
  found->threads[lane] = &thread;
  found->values[lane] = value;
  found->arguments[lane] = argument;
  found->widths[lane] = width;
  found->operands[lane] = operand;
  found->place = place;
  found->closure = closure;
  found->finish = finish_all;
  if (found->arrived == needed_lanes(*found)) {
    complete(open, found);
    return;
  }
  wait([&thread, kind, mask, lane] {
    unsigned missing = 0;
    for (const Collective& one : warp_of(thread).open)
      if (one.kind == kind && one.mask == mask && (one.arrived >> lane & 1u) != 0)
        missing = mask & lanes_of_warp(thread.index) & ~one.arrived;
    return std::string(name_of(kind)) + " of its warp; these lanes have not come: " + hex_mask(missing);
  });
}

std::uint64_t warp_collective(Collect what, unsigned mask, std::uint64_t value, int argument, int width) {
  const Entry entry;
  const void* const place = TMAOPS_PLACE;
  collect(what, mask, value, argument, width, nullptr, place, [&](Collective& all) { finish(all, place); });
  return self->collected;
}

void decrease_registers(int registers) {
  const Entry entry;
  const void* const place = TMAOPS_PLACE;
  Warp& warp = come_for_registers(registers, place);
  if (registers > warp.registers)
    report(Rule::collective,
           "decrease_registers<" + std::to_string(registers) + ">(), where each thread has at most " +
               std::to_string(warp.registers),
           place);
  Block& block = *self->block;
  block.free_registers += warp.registers - registers;  // the first lane: the others find it done
  warp.registers = registers;
  for (Thread* thread : std::exchange(block.waiting_for_registers, {})) wake(*thread);
}

void increase_registers(int registers) {
  const Entry entry;
  Warp& warp = come_for_registers(registers, TMAOPS_PLACE);
  Block& block = *self->block;
  while (registers - warp.registers > block.free_registers) {
    block.waiting_for_registers.push_back(self);
    wait([&block, &warp, registers] {
      return "increase_registers<" + std::to_string(registers) + ">(): each thread of its warp has " +
             std::to_string(warp.registers) + ", and other warps have left " + std::to_string(block.free_registers) +
             " for it by decrease_registers()";
    });
  }
  block.free_registers -= registers - warp.registers;
  warp.registers = registers;
}

}  // namespace tmaops::executor
