// Numbers and lists as text.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tmaops::tma {

/// "0x7f0010".
std::string hex(std::uint64_t value);
/// "32,160,92".
std::string comma_list(std::span<const std::int64_t> values);
/// "{32, 2, 2}".
std::string braces(std::span<const std::int64_t> values);

}  // namespace tmaops::tma
