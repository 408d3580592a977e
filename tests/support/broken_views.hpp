// Views as another language's structs make them: filled field by field, with anything in them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/expect_error.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops::test {

/// Extents, ranks and enumerators that are none.
inline constexpr std::int64_t kNoExtents[] = {-1, -2, std::numeric_limits<std::int64_t>::min()};
inline constexpr int kNoRanks[] = {-1, -8, 9, 100, 1'000'000, std::numeric_limits<int>::max(), 1 << 30, -(1 << 30)};
inline constexpr int kNoEnumerators[] = {17, 77, 255};

template <class View>
struct BrokenView {
  std::string what;
  View view;
  ErrorCode code;
};

/// Every way in which a good view of an operator's argument can be none: one field wrong in each.
template <class View>
std::vector<BrokenView<View>> broken_views(const View& good) {
  std::vector<BrokenView<View>> all;
  const auto add = [&](const std::string& what, ErrorCode code, const auto& spoil) {
    View view = good;
    spoil(view);
    all.push_back({what, view, code});
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(good.rank); ++i)
    for (const std::int64_t extent : kNoExtents)
      add("shape[" + std::to_string(i) + "] = " + std::to_string(extent), ErrorCode::shape_mismatch,
          [&](View& view) { view.shape[i] = extent; });
  for (const int rank : kNoRanks)
    add("rank = " + std::to_string(rank), ErrorCode::shape_mismatch, [&](View& view) { view.rank = rank; });
  for (const int number : kNoEnumerators) {
    add("dtype = " + std::to_string(number), ErrorCode::unsupported_dtype,
        [&](View& view) { view.dtype = static_cast<DType>(number); });
    add("device.type = " + std::to_string(number), ErrorCode::bad_parameter,
        [&](View& view) { view.device.type = static_cast<DeviceType>(number); });
  }
  add("data = null", ErrorCode::null_pointer, [](View& view) { view.data = nullptr; });
  return all;
}

/// Spoils `view`, which `call` uses, in every such way: the call fails and names "operator: argument".
template <class View, class Call>
void expect_refused(const std::string& argument, View& view, const Call& call) {
  const View good = view;
  for (const BrokenView<View>& broken : broken_views(good)) {
    SCOPED_TRACE(argument + ": " + broken.what);
    view = broken.view;
    expect_error(broken.code, call, argument);
  }
  view = good;
}

/// The same for an option that is an enumeration: a bad_parameter that names it.
template <class Enum, class Call>
void expect_enumerator_refused(const std::string& argument, Enum& option, const Call& call) {
  const Enum good = option;
  for (const int number : kNoEnumerators) {
    SCOPED_TRACE(argument + " = " + std::to_string(number));
    option = static_cast<Enum>(number);
    expect_error(ErrorCode::bad_parameter, call, argument, std::to_string(number));
  }
  option = good;
}

}  // namespace tmaops::test
