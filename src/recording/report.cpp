// How the times of a recording were read, and the report of a run as JSON.
#include <algorithm>
#include <charconv>

#include "core/display.hpp"
#include "core/enum_name.hpp"
#include "core/utf8.hpp"
#include "recording/run.hpp"

namespace tmaops::recording {
namespace {

std::string choice_text(const TimeColumn& time, std::string_view option) {
  if (time.choice == TimeChoice::option) return "named by " + std::string(option);
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
  if (column.form == TimeForm::pair)
    text = of + "s " + name + " and '" + display_text(column.second_name) + "' in s and ns";
  if (column.form == TimeForm::iso8601) text = of + " " + name + " in ISO 8601";
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

/// JSON text, value by value.
class JsonText {
 public:
  JsonText& key(std::string_view name) {
    separate();
    quote(name);
    text_ += ": ";
    after_key_ = true;
    return *this;
  }
  void value(std::string_view text) {
    separate();
    quote(text);
  }
  void value(std::int64_t number) {
    separate();
    text_ += std::to_string(number);
  }
  void open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (!first_ && !after_key_) text_ += ", ";
    first_ = after_key_ = false;
  }
  /// Names of columns are bytes of a file: what is not UTF-8 becomes U+FFFD.
  void quote(std::string_view text) {
    static constexpr char kDigits[] = "0123456789abcdef";
    text_ += '"';
    for (const char c : repaired_utf8(text)) {
      if (c == '"' || c == '\\') {
        text_ += {'\\', c};
      } else if (static_cast<unsigned char>(c) < 0x20) {
        text_ += std::string("\\u00") + kDigits[c >> 4] + kDigits[c & 15];
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }

  std::string text_;
  bool first_ = true, after_key_ = false;
};

void add_notes(JsonText& json, std::string_view key, const std::vector<Note>& notes) {
  json.key(key).open('[');
  for (const Note& note : notes) {
    json.open('{');
    json.key("id").value(note.id);
    json.key("text").value(note.text);
    json.close('}');
  }
  json.close(']');
}

void add_time(JsonText& json, const TimeSummary& time) {
  static constexpr std::string_view kForms[] = {"number", "pair", "iso8601", "datetime64"};
  json.key("time").open('{');
  json.key("name").value(time.column.name);
  if (time.column.form == TimeForm::pair) json.key("second_name").value(time.column.second_name);
  json.key("index").value(static_cast<std::int64_t>(time.column.source));
  json.key("form").value(enum_name(kForms, time.column.form));
  json.key("unit").value(to_string(time.column.unit));
  json.key("chosen_by").value(to_string(time.column.choice));
  json.key("unit_by").value(to_string(time.column.unit_source));
  json.key("first_ns").value(time.first);
  json.key("last_ns").value(time.last);
  json.key("median_step_ns").value(time.median_step);
  json.close('}');
}

void add_plan(JsonText& json, const ModePlan& plan) {
  json.key("columns").open('[');
  for (const ModePart& part : plan.parts) {
    json.open('{');
    json.key("name").value(part.name);
    json.key("mode").value(part.mode);
    json.key("reason").value(part.reason);
    json.key("index").value(part.source == Column::kMade ? -1 : static_cast<std::int64_t>(part.source));
    json.key("first").value(part.first);
    json.key("count").value(part.count);
    json.close('}');
  }
  json.close(']');
  json.key("quaternions").open('[');
  for (const auto& [names, order] : plan.quaternions) {
    json.open('{');
    json.key("columns").value(names);
    json.key("order").value(order);
    json.close('}');
  }
  json.close(']');
  json.key("slerp").open('[');
  for (const std::vector<ChannelReference>& four : plan.slerp) {
    json.open('[');
    for (const ChannelReference& channel : four) {
      json.open('[');
      json.value(channel.column == Column::kMade ? -1 : static_cast<std::int64_t>(channel.column));
      json.value(channel.channel);
      json.close(']');
    }
    json.close(']');
  }
  json.close(']');
}

}  // namespace

std::string Rules::json(const std::vector<Note>& warnings) const {
  JsonText json;
  json.open('{');
  json.key("schema").value(1);
  add_time(json, time);
  add_plan(json, plan);
  add_notes(json, "notes", notes());
  add_notes(json, "warnings", warnings);
  json.close('}');
  return json.take();
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
  JsonText json;
  json.open('{');
  json.key("schema").value(1);
  json.key("samples").value(rules.input.rows);
  json.key("episodes").value(static_cast<std::int64_t>(selection.offsets.size()) - 1);
  json.key("targets").value(static_cast<std::int64_t>(targets.times.size()));
  json.key("rows").value(static_cast<std::int64_t>(selection.kept.size()));
  add_time(json, rules.time);
  json.key("outside").open('{');
  json.key("policy").value(policies.outside);
  json.key("targets").value(selection.outside);
  json.close('}');
  json.key("gaps").open('{');
  json.key("max_gap_ns").value(policies.max_gap);
  json.key("count").value(steps.wider_than_gap);
  json.key("targets").value(selection.in_gaps - table.masked);
  json.close('}');
  json.key("missing").open('{');
  json.key("samples").value(rules.input.missing.count);
  json.key("targets").value(table.masked);
  json.close('}');
  json.key("snapped").value(targets.snapped);
  json.key("longest_step_ns").value(steps.longest);
  json.key("equal_stamps").value(steps.zero);
  json.key("variant").value(table.variant);
  add_plan(json, rules.plan);
  add_notes(json, "notes", rules.notes());
  add_notes(json, "warnings", warnings);
  json.close('}');
  return json.take();
}

}  // namespace tmaops::recording
