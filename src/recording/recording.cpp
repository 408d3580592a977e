#include "recording/recording.hpp"

#include <algorithm>
#include <iterator>

#include "core/enum_name.hpp"

namespace tmaops::recording {

std::string_view to_string(TimeChoice choice) {
  static constexpr std::string_view names[] = {"format",     "option",       "known name", "only array",
                                               "only dates", "similar name", "position"};
  return enum_name(names, choice);
}

std::string_view to_string(UnitSource source) {
  static constexpr std::string_view names[] = {"format", "option", "name", "only fit", "dates", "step", "usual"};
  return enum_name(names, source);
}

std::int64_t count_missing(const Array& array) {
  std::int64_t missing = 0;
  double values[256];
  constexpr std::int64_t kPart = std::size(values);
  for (std::int64_t i = 0; array.type.kind == ElementKind::real && i < array.size(); i += kPart) {
    const std::int64_t count = std::min(kPart, array.size() - i);
    load_f64(array, i, 1, count, values, 1);
    for (std::int64_t k = 0; k < count; ++k) missing += values[k] != values[k];
  }
  if (array.type.kind == ElementKind::time)
    for (std::int64_t i = 0; i < array.size(); ++i) missing += element_i64(array, i) == kNotATime;
  return missing;
}

std::int64_t Column::width() const {
  std::int64_t product = 1;
  for (std::size_t i = 1; i < data.shape.size(); ++i) product *= data.shape[i];
  return product;
}

std::string Recording::place(std::int64_t row) const {
  if (lines.empty()) return where + ": row " + std::to_string(row);
  return where + ":" + std::to_string(lines[static_cast<std::size_t>(row)]);
}

}  // namespace tmaops::recording
