// Memory that runs out at a chosen allocation.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "tmaops/error.hpp"

namespace tmaops::test {

/// While it lives, the allocation number `first` (counted from 0, in all threads) fails, and all after it if `and_all`.
class FailingAllocations {
 public:
  FailingAllocations(std::int64_t first, bool and_all);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;
  /// Whether one failed so far.
  bool failed() const;
};

/// Runs `call` again and again, each time with another allocation that fails: it ends well or with out_of_memory, and
/// no other exception leaves it.
template <class Call>
void expect_out_of_memory_is_an_error(const char* what, const Call& call) {
  call();  // what is made once
  for (const bool and_all : {false, true}) {
    std::int64_t refused = 0;
    bool failed = true;
    for (std::int64_t first = 0; failed; ++first) {
      ASSERT_LT(first, 100'000) << what;
      const FailingAllocations running_out(first, and_all);
      try {
        call();
      } catch (const Error& error) {
        refused += error.code() == ErrorCode::out_of_memory;
      } catch (...) {
        refused = -1'000'000;  // checked below: an assertion here would need memory
      }
      failed = running_out.failed();
    }
    EXPECT_GE(refused, 0) << what << ": something that is no tmaops::Error";
    EXPECT_GT(refused, 0) << what << ": no allocation failed";
  }
}

}  // namespace tmaops::test
