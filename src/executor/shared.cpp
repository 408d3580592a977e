// Where a block's shared memory lies.
#include <cstring>

#include "executor/state.hpp"

namespace tmaops::executor {

void* dynamic_shared() {
  const Entry entry;
  return self->block->window + kReservedBytes;
}

void* block_shared(const void* key, std::size_t bytes, std::size_t alignment) {
  const Entry entry;
  Launch& l = *launch;
  auto found = l.fixed.find(key);
  if (found == l.fixed.end()) {
    const std::size_t at = (l.fixed_end + alignment - 1) / alignment * alignment;
    const std::size_t end = at + bytes;
    const std::size_t fixed = end - kReservedBytes - l.dynamic_bytes;
    if (fixed > kMostFixedBytes || end - kReservedBytes > kMostSharedBytes)
      stop(Rule::bad_launch,
           std::to_string(fixed) + " bytes of block_shared beside " + std::to_string(l.dynamic_bytes) +
               " of dynamic shared memory: at most " + std::to_string(kMostFixedBytes) + ", and " +
               std::to_string(kMostSharedBytes) + " in all",
           TMAOPS_PLACE);
    for (Block* block : l.blocks) {
      block->cells.assign(l.fixed_end, static_cast<std::uint32_t>(end - l.fixed_end), {});
      std::memset(block->window + l.fixed_end, kUnwritten, end - l.fixed_end);
      block->used_cells = static_cast<std::uint32_t>(end);
    }
    l.fixed_end = static_cast<std::uint32_t>(end);
    found = l.fixed.emplace(key, FixedShared{static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(bytes)}).first;
  }
  return self->block->window + found->second.at;
}

void allow_unwritten_reads(int more) { self->unwritten_reads += more; }

std::uint32_t shared_address(const void* pointer) {
  const Entry entry;
  const Place at = place_of(pointer);
  if (at.block == nullptr)
    stop(Rule::outside_shared, "the shared address of a pointer to other memory is taken", TMAOPS_PLACE);
  return at.address;
}

void* shared_pointer(std::uint32_t address) {
  const Entry entry;
  return host_of(*self->block, address);
}

}  // namespace tmaops::executor
