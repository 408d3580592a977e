// Threads that look for a change.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tmaops::executor {

/// All threads that can go on have looked in vain, more than once.
bool all_poll();
void begin_turn();
/// A thread looks in vain, and others go on; `text` says what it does, and `cost` how many accesses that is worth.
/// Where nothing happens for too long, the launch ends. Throws nothing.
void poll(std::uint64_t cost, const std::function<std::string()>& text, const void* place);
/// Counts the accesses of a thread since it went on: it may look at these bytes until another thread changes them.
void count_access(const void* pointer, const void* place);
/// Something that a thread may look for has happened.
void note_progress();

}  // namespace tmaops::executor
