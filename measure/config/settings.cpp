#include "config/settings.hpp"

#include <algorithm>
#include <charconv>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"

namespace tmaops {
namespace {

std::string short_number(double value) {
  char buffer[32];
  const auto [end, status] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return status == std::errc{} ? std::string(buffer, end) : std::string("?");
}

std::string words_text(std::initializer_list<std::string_view> words) { return "one of " + joined(words); }

/// Whether a plain YAML scalar of this text would be read as this text again, also inside {}.
bool is_plain(std::string_view text) {
  constexpr std::string_view special = ",[]{}#&*!|>'\"%@`:";
  return !text.empty() && text.front() != ' ' && text.back() != ' ' && text.front() != '-' &&
         text.find_first_of(special) == std::string_view::npos;
}

}  // namespace

std::string Place::text() const {
  if (line == 0) return source;
  return source + ":" + std::to_string(line) + ":" + std::to_string(column);
}

void Settings::only(std::initializer_list<std::string_view> names) const {
  const std::span<const std::string_view> known(names.begin(), names.size());
  for (const Setting& setting : settings_) {
    if (std::ranges::find(known, setting.name) != known.end()) continue;
    fail(ErrorCode::unknown_key, setting, words_text(names), did_you_mean(setting.name, known));
  }
}

const Setting* Settings::find(std::string_view name) const {
  const auto found = std::ranges::find(settings_, name, &Setting::name);
  return found == settings_.end() ? nullptr : &*found;
}

std::vector<const Setting*> Settings::find_all(std::string_view name) const {
  std::vector<const Setting*> found;
  for (const Setting& setting : settings_)
    if (setting.name == name) found.push_back(&setting);
  return found;
}

void Settings::expect_unquoted(const Setting& setting, const std::string& needed) const {
  if (setting.quoted)
    fail(ErrorCode::wrong_type, setting, needed, "Leave out the quotes: what stands in quotes is always text.");
}

std::int64_t Settings::integer(std::string_view name, std::int64_t fallback, std::int64_t least,
                               std::int64_t most) const {
  const Setting* setting = find(name);
  if (setting == nullptr) return fallback;
  const std::string range = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  expect_unquoted(*setting, range);
  const auto value = parse_integer(setting->value);
  if (!value) {
    if (!parse_number(setting->value)) fail(ErrorCode::wrong_type, *setting, range);
    const bool digits = setting->value.find_first_not_of("+-0123456789") == std::string::npos;
    fail(digits ? ErrorCode::bad_value : ErrorCode::wrong_type, *setting, range,
         digits ? "" : "Write it as a whole number without exponent and decimal point, for example 1000.");
  }
  if (*value < least || *value > most) fail(ErrorCode::bad_value, *setting, range);
  return *value;
}

double Settings::number(std::string_view name, double fallback, double least, double most) const {
  const Setting* setting = find(name);
  if (setting == nullptr) return fallback;
  const std::string range = "a number from " + short_number(least) + " to " + short_number(most);
  expect_unquoted(*setting, range);
  const auto value = parse_number(setting->value);
  if (!value) fail(ErrorCode::wrong_type, *setting, range);
  if (!(*value >= least && *value <= most)) fail(ErrorCode::bad_value, *setting, range);
  return *value;
}

bool Settings::boolean(std::string_view name, bool fallback) const {
  const Setting* setting = find(name);
  if (setting == nullptr) return fallback;
  expect_unquoted(*setting, "true or false");
  if (setting->value == "true") return true;
  if (setting->value == "false") return false;
  fail(ErrorCode::wrong_type, *setting, "true or false");
}

int Settings::choice(std::string_view name, std::string_view fallback,
                     std::initializer_list<std::string_view> words) const {
  const Setting* setting = find(name);
  const std::string_view value = setting == nullptr ? fallback : std::string_view(setting->value);
  const auto found = std::ranges::find(words, value);
  if (found != words.end()) return static_cast<int>(found - words.begin());
  if (setting == nullptr)
    tmaops::fail(ErrorCode::internal, section_ + ": " + std::string(name), "default '" + std::string(value) + "'",
                 words_text(words));
  fail(ErrorCode::bad_value, *setting, words_text(words),
       did_you_mean(value, std::span<const std::string_view>(words.begin(), words.size())));
}

std::string Settings::word(std::string_view name, std::string_view fallback,
                           std::initializer_list<std::string_view> words) const {
  return std::string(words.begin()[choice(name, fallback, words)]);
}

DType Settings::dtype(std::string_view name, DType fallback, std::initializer_list<DType> allowed) const {
  const Setting* setting = find(name);
  if (setting == nullptr) return fallback;
  const auto value = parse_dtype(setting->value);
  if (value && std::ranges::find(allowed, *value) != allowed.end()) return *value;
  fail(ErrorCode::bad_value, *setting, "one of " + joined(allowed, ", ", [](DType one) { return to_string(one); }));
}

std::string Settings::to_text() const {
  std::string text;
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    const Setting& setting = settings_[i];
    const auto same = find_all(setting.name);
    if (same.front() != &setting) continue;  // printed with the first of its name
    std::string value;
    for (const Setting* one : same) {
      const bool plain = is_plain(one->value) && !one->quoted;
      value += (value.empty() ? "" : ", ") + (plain ? one->value : "\"" + one->value + "\"");
    }
    text += (text.empty() ? "" : ", ") + setting.name + ": " + (same.size() > 1 ? "[" + value + "]" : value);
  }
  return section_ + ": {" + text + "}";
}

void Settings::fail(ErrorCode code, const Setting& setting, std::string needed, std::string mend) const {
  const std::string name = display_text(setting.name);
  const std::string key = section_.empty() ? name : section_ + ": " + name;
  const bool about_key = code == ErrorCode::unknown_key;
  const Place& place = about_key && setting.key_place.line > 0 ? setting.key_place : setting.place;
  tmaops::fail(code, place.text() + ": " + key, "'" + (about_key ? name : display_text(setting.value)) + "'", needed,
               mend);
}

}  // namespace tmaops
