// From the structs of tmaops.h to the views and options of the C++ functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/checks.hpp"
#include "tmaops/allocator.hpp"
#include "tmaops/tensor.hpp"
#include "tmaops/tmaops.h"

namespace tmaops::c_api {

/// Reads the arguments of one operator. What no view or option can express is refused here, the rest by the operator.
class Arguments {
 public:
  explicit Arguments(std::string_view op) : checks_(op) {}

  TensorView tensor(std::string_view argument, const tmaops_tensor* given) const;
  /// A view that is not given for null.
  TensorView optional_tensor(std::string_view argument, const tmaops_tensor* given) const;

  template <class Enum>
  Enum enumerator(std::string_view argument, std::int32_t given) const {
    if (given < 0 || given > UINT8_MAX)
      checks_.fail(ErrorCode::bad_parameter, argument, std::to_string(given), "a constant of tmaops.h");
    return static_cast<Enum>(given);  // whether it is one of them is for the operator to say
  }

  template <class T>
  std::span<const T> list(std::string_view argument, const T* entries, std::int64_t count) const {
    if (count < 0) checks_.fail(ErrorCode::bad_parameter, argument, std::to_string(count) + " entries", "0 or more");
    const std::span<const T> all(entries, static_cast<std::size_t>(count));
    checks_.list(argument, all);
    return all;
  }

  /// The time that is not 0: as a double in seconds, or whole nanoseconds.
  std::variant<double, std::int64_t> time(std::string_view argument, const tmaops_time& given) const;

  /// Options of this version: fields that the caller's version does not have are defaults, fields that this version
  /// does not have must be 0.
  template <class Options>
  Options options(const Options* given, Options defaults) const {
    if (given == nullptr) return defaults;
    const std::size_t size = given->size;
    check_options(given, size, sizeof(Options));
    std::memcpy(&defaults, given, std::min(size, sizeof(Options)));
    return defaults;
  }

  /// The library's own allocator for null.
  static Allocator allocator(const tmaops_allocator* given) {
    return given == nullptr ? Allocator() : Allocator{given->context, given->allocate, given->release};
  }

  /// Refuses null where something must be: the place for a result.
  void place(std::string_view argument, const void* given) const;

  const ArgumentChecks& checks() const { return checks_; }

 private:
  void check_options(const void* given, std::size_t size, std::size_t known) const;

  ArgumentChecks checks_;
};

/// A text that may be null.
inline std::string text(const char* given) { return given == nullptr ? std::string() : std::string(given); }

/// Element types by name, in the order of DType; bool, which is taken as u8, comes last.
std::span<const tmaops_named_dtype> named_dtypes();

}  // namespace tmaops::c_api
