#include "core/spelling.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

namespace tmaops {
namespace {

/// Optimal string alignment distance: Levenshtein's with swapped neighbours as one edit.
std::size_t edits(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * width);
  for (std::size_t j = 0; j < width; ++j) cost[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    cost[i * width] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t best = cost[(i - 1) * width + j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      best = std::min({best, cost[(i - 1) * width + j] + 1, cost[i * width + j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = std::min(best, cost[(i - 2) * width + j - 2] + 1);
      cost[i * width + j] = best;
    }
  }
  return cost.back();
}

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t fewest = 0;
  if (word.size() > 64) return best;  // not a misspelling
  for (const std::string_view name : known) {
    const std::size_t count = edits(word, name);
    if (count <= std::max<std::size_t>(1, name.size() / 3) && (best.empty() || count < fewest)) {
      best = name;
      fewest = count;
    }
  }
  return best;
}

template <class T>
std::optional<T> parse(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) { return parse<std::int64_t>(text); }
std::optional<double> parse_number(std::string_view text) { return parse<double>(text); }

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view near = nearest_name(word, known);
  return near.empty() ? "" : "Did you mean '" + std::string(near) + "'?";
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::vector<std::string> split_list(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

}  // namespace tmaops
