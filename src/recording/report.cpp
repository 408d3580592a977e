// How the times of a recording were read, and the report of a run as JSON.
#include <algorithm>
#include <charconv>

#include "core/display.hpp"
#include "core/enum_name.hpp"
#include "core/spelling.hpp"
#include "core/utf8.hpp"
#include "recording/run.hpp"

namespace tmaops::recording {
namespace {

std::string choice_text(const TimeColumn& time, std::string_view option) {
  if (time.choice == TimeChoice::option) return "named by " + std::string(option);
  if (time.choice == TimeChoice::like_name) return "named like a time, and rising";
  if (time.choice == TimeChoice::only_dates) return "the only dates, since no name is known";
  return time.choice == TimeChoice::position ? "the first column, since no name is known" : "";
}

std::string unit_text(const TimeColumn& time, std::string_view option) {
  if (time.unit_source == UnitSource::option) return "unit by " + std::string(option);
  constexpr std::string_view texts[] = {"unit by the format",
                                        "",
                                        "unit by the name",
                                        "no larger unit fits timestamps of this size",
                                        "in no other unit are these dates from 1990 to 2100",
                                        "unit by the size of the steps",
                                        "unit assumed"};
  return std::string(enum_name(texts, time.unit_source));
}

/// As printf's %.4g, whatever the locale.
std::string four_digits(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 4).ptr;
  return {text, end};
}

}  // namespace

Steps measure_steps(const Recording& recording, std::int64_t max_gap) {
  std::vector<std::int64_t> all;
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e)
    for (std::int64_t row = recording.offsets[e] + 1; row < recording.offsets[e + 1]; ++row) {
      std::int64_t step = 0;
      if (__builtin_sub_overflow(recording.times[static_cast<std::size_t>(row)],
                                 recording.times[static_cast<std::size_t>(row - 1)], &step))
        continue;  // the operator has an error for it
      all.push_back(step);
    }
  if (all.empty()) return {};
  Steps steps;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  steps.median = *middle;
  steps.longest = *std::max_element(all.begin(), all.end());
  steps.wider_than_gap = max_gap == 0 ? 0 : std::count_if(all.begin(), all.end(), [&](auto s) { return s > max_gap; });
  steps.zero = std::count(all.begin(), all.end(), 0);
  return steps;
}

TimeSummary summarise_times(const Recording& recording, const Steps& steps) {
  TimeSummary summary{recording.time, recording.kind};
  if (!recording.times.empty()) {
    const auto [first, last] = std::minmax_element(recording.times.begin(), recording.times.end());
    summary.first = *first;
    summary.last = *last;
  }
  summary.median_step = steps.median;
  return summary;
}

std::string TimeSummary::text(std::string_view name_option, std::string_view unit_option) const {
  const std::string of(kind), name = "'" + display_text(column.name) + "'";
  std::string text = of + " " + name + " in " + std::string(to_string(column.unit));
  const std::string second = column.second_name.empty() ? "" : " and '" + display_text(column.second_name) + "'";
  if (column.form == TimeForm::pair)
    text = of + "s " + name + second + " in s and " + std::string(to_string(column.second_unit));
  if (column.form == TimeForm::iso8601)
    text = of + " " + name + second + (column.iso.order == 'Y' ? " in ISO 8601" : " as text");
  if (column.form == TimeForm::datetime64) text = of + " " + name + " of datetime64";
  const int digits = digits_needed({first, last}, TimeUnit::seconds);
  text +=
      ", " + time_text(first, TimeUnit::seconds, digits) + " to " + time_text(last, TimeUnit::seconds, digits) + " s";
  if (median_step > 0) text += ", " + four_digits(1e9 / static_cast<double>(median_step)) + " Hz median";
  std::string how = choice_text(column, name_option);
  if (column.form == TimeForm::number) how += (how.empty() ? "" : "; ") + unit_text(column, unit_option);
  return how.empty() ? text : text + " (" + how + ")";
}

namespace {

/// A value as JSON text.
struct Json {
  std::string text;

  Json(std::int64_t number) : text(std::to_string(number)) {}
  Json(const std::string& words) : Json(std::string_view(words)) {}
  /// Names of columns are bytes of a file: what is not UTF-8 becomes U+FFFD.
  Json(std::string_view words) : text("\"") {
    static constexpr char kDigits[] = "0123456789abcdef";
    for (const char c : repaired_utf8(words)) {
      if (c == '"' || c == '\\') {
        text += {'\\', c};
      } else if (static_cast<unsigned char>(c) < 0x20) {
        text += std::string("\\u00") + kDigits[c >> 4] + kDigits[c & 15];
      } else {
        text += c;
      }
    }
    text += '"';
  }
};
using Members = std::vector<std::pair<std::string_view, Json>>;

Json raw(std::string text) {
  Json made(0);
  made.text = std::move(text);
  return made;
}

Json object(const Members& members) {
  return raw("{" +
             joined(members, ", ", [](const auto& each) { return Json(each.first).text + ": " + each.second.text; }) +
             "}");
}

template <class Values, class Make>
Json list(const Values& values, const Make& make) {
  return raw("[" + joined(values, ", ", [&](const auto& each) { return make(each).text; }) + "]");
}

Json source_of(std::size_t column) { return column == Column::kMade ? -1 : static_cast<std::int64_t>(column); }

Json json_of(const std::vector<Note>& notes) {
  return list(notes, [](const Note& note) { return object({{"id", note.id}, {"text", note.text}}); });
}

Json json_of(const TimeSummary& time) {
  static constexpr std::string_view kForms[] = {"number", "pair", "iso8601", "datetime64"};
  const TimeColumn& column = time.column;
  Members members{{"name", column.name},
                  {"index", static_cast<std::int64_t>(column.source)},
                  {"form", enum_name(kForms, column.form)},
                  {"unit", to_string(column.unit)},
                  {"chosen_by", to_string(column.choice)},
                  {"unit_by", to_string(column.unit_source)},
                  {"first_ns", time.first},
                  {"last_ns", time.last},
                  {"median_step_ns", time.median_step}};
  if (!column.second_name.empty()) members.push_back({"second_name", column.second_name});
  if (column.form == TimeForm::pair) members.push_back({"second_unit", to_string(column.second_unit)});
  constexpr std::int64_t kLastOf1999 = 946'598'400 * kSecond;  // whose day is no month
  if (column.form == TimeForm::iso8601) members.push_back({"example", iso_time_text(kLastOf1999, column.iso, 0)});
  return object(members);
}

/// The plan, notes and warnings, behind what else is said.
std::string json_with(Members members, const Rules& rules, const std::vector<Note>& warnings) {
  const auto channel = [](const ChannelReference& each) {
    return raw("[" + source_of(each.column).text + ", " + std::to_string(each.channel) + "]");
  };
  const auto part = [](const ModePart& each) {
    return object({{"name", each.name},
                   {"mode", each.mode},
                   {"reason", each.reason},
                   {"index", source_of(each.source)},
                   {"first", each.first},
                   {"count", each.count}});
  };
  const auto quaternion = [](const auto& each) { return object({{"columns", each.first}, {"order", each.second}}); };
  members.insert(members.end(),
                 {{"columns", list(rules.plan.parts, part)},
                  {"quaternions", list(rules.plan.quaternions, quaternion)},
                  {"slerp", list(rules.plan.slerp, [&](const auto& four) { return list(four, channel); })},
                  {"notes", json_of(rules.notes())},
                  {"warnings", json_of(warnings)}});
  return object(members).text;
}

}  // namespace

std::string Rules::json(const std::vector<Note>& warnings) const {
  return json_with({{"schema", 1}, {"time", json_of(time)}}, *this, warnings);
}

std::vector<Note> Rules::notes() const {
  std::vector<Note> all{
      {time.column.form == TimeForm::number && time.column.unit_source == UnitSource::usual ? "unit_assumed" : "time",
       "time: " + time.text()}};
  for (const auto& [names, order] : plan.quaternions)
    all.push_back({"quaternion", "quaternion: " + display_text(names) + " (" + order + ")"});
  all.insert(all.end(), plan.notes.begin(), plan.notes.end());
  return all;
}

std::string Run::json(const std::vector<Note>& warnings) const {
  return json_with({{"schema", 1},
                    {"samples", rules.input.rows},
                    {"episodes", std::ssize(selection.offsets) - 1},
                    {"targets", std::ssize(targets.times)},
                    {"rows", std::ssize(selection.kept)},
                    {"time", json_of(rules.time)},
                    {"outside", object({{"policy", policies.outside}, {"targets", selection.outside}})},
                    {"gaps", object({{"max_gap_ns", policies.max_gap},
                                     {"count", steps.wider_than_gap},
                                     {"targets", selection.in_gaps - table.masked}})},
                    {"missing", object({{"samples", rules.input.missing.count}, {"targets", table.masked}})},
                    {"snapped", targets.snapped},
                    {"longest_step_ns", steps.longest},
                    {"equal_stamps", steps.zero},
                    {"variant", table.variant}},
                   rules, warnings);
}

}  // namespace tmaops::recording
