// Named values that a user wrote, each with the place it was written at, so that a bad one can be pointed to.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tmaops/dtype.hpp"
#include "tmaops/error.hpp"

namespace tmaops {

/// A place in a file or in an option of the command line. Lines and columns count from 1; 0: the whole source.
struct Place {
  std::string source{};
  int line = 0;
  int column = 0;
  /// "configs/quick.yaml:3:12".
  std::string text() const;
};

/// One value. `quoted` tells '256' from 256: a quoted value is never a number.
struct Setting {
  std::string name;
  std::string value;
  Place place{};  // of the value
  bool quoted = false;
  Place key_place{};  // of the name; the same as place when it was not given
};

/// The values of one section, for example of one problem. The readers throw Error wrong_type or bad_value with the
/// place, the key and what the key needs.
class Settings {
 public:
  Settings() = default;
  Settings(std::string section, Place place) : section_(std::move(section)), place_(std::move(place)) {}

  /// Name of the section: the operator of a problem.
  const std::string& section() const { return section_; }
  const Place& place() const { return place_; }

  /// Appends a value; a name may occur several times where the key takes a list.
  void add(Setting setting) { settings_.push_back(std::move(setting)); }

  /// Throws Error unknown_key for the first name that is not one of these, with the nearest spelling.
  void only(std::initializer_list<std::string_view> names) const;

  const Setting* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::vector<const Setting*> find_all(std::string_view name) const;

  std::int64_t integer(std::string_view name, std::int64_t fallback, std::int64_t least, std::int64_t most) const;
  double number(std::string_view name, double fallback, double least, double most) const;
  bool boolean(std::string_view name, bool fallback) const;
  /// Index of the value in `words`.
  int choice(std::string_view name, std::string_view fallback, std::initializer_list<std::string_view> words) const;
  /// The value, one of `words`.
  std::string word(std::string_view name, std::string_view fallback,
                   std::initializer_list<std::string_view> words) const;
  DType dtype(std::string_view name, DType fallback, std::initializer_list<DType> allowed) const;

  /// "gemm: {mode: RC, m: 256}": the section in the configuration's syntax.
  std::string to_text() const;

  /// Throws Error about one value of this section.
  [[noreturn]] void fail(ErrorCode code, const Setting& setting, std::string needed, std::string mend = {}) const;

 private:
  void expect_unquoted(const Setting& setting, const std::string& needed) const;

  std::string section_;
  Place place_;
  std::vector<Setting> settings_;
};

}  // namespace tmaops
