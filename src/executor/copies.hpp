// Copies under way: what every kind of them checks and notes when it is issued.
#pragma once

#include <memory>
#include <string>

#include "executor/state.hpp"

namespace tmaops::executor {

/// A pointer into shared memory of the cluster, for a copy.
Place shared_operand(const void* pointer, std::uint32_t alignment, const char* who, const void* place);
/// Global memory that a copy reads or writes.
void check_global(const void* pointer, std::size_t bytes, std::uint32_t alignment, const char* who, const void* place);
/// Notes that the copy uses these bytes.
void use_global(const Operation& operation, const void* pointer, std::size_t bytes, bool writes, const char* who);
/// The bytes of operation.writes become garbage until it completes.
void begin_write(const Operation& operation, const char* who);
/// The bytes of operation.reads may not be written until it has read them.
void begin_read(const Operation& operation, const char* who);
/// Lets it fly, as one of the stores that the thread commits next.
void issue_store(const std::shared_ptr<Operation>& operation);

}  // namespace tmaops::executor
