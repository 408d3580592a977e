#include <algorithm>
#include <numeric>

#include "c_api/plan.hpp"
#include "core/spelling.hpp"
#include "recording/arrays.hpp"
#include "recording/run.hpp"
#include "recording/time_names.hpp"

struct tmaops_recording_rules {
  tmaops::recording::Rules rules{};
  std::string report{};
};

struct tmaops_recording_result {
  std::vector<tmaops::recording::Column> arrays{};
  std::vector<std::vector<std::int64_t>> text_offsets{};
  std::vector<std::string> texts{};
  std::vector<tmaops_recording_column> columns{};
  std::vector<std::int64_t> offsets{};
  std::string report{};
};

namespace tmaops::c_api {
namespace {

using recording::Array;
using recording::Column;
using recording::ElementKind;

/// An array of memory that the caller keeps during the call.
template <class T>
std::shared_ptr<const T[]> borrowed(const void* data) {
  return {std::shared_ptr<void>(), static_cast<const T*>(data)};
}

Column with_texts(const Arguments& read, Column column, const tmaops_recording_column& given,
                  const std::string& argument) {
  if (column.data.shape.size() != 1)
    read.checks().fail(ErrorCode::shape_mismatch, argument, column.data.text(), "text of one dimension");
  read.place(argument + ".text_offsets", given.text_offsets);
  const std::int64_t count = column.data.shape[0];
  std::shared_ptr<recording::TextSpan[]> spans(new recording::TextSpan[static_cast<std::size_t>(count)]);
  for (std::int64_t i = 0; i < count; ++i)
    spans[i] = {static_cast<std::uint64_t>(given.text_offsets[i]),
                static_cast<std::uint64_t>(given.text_offsets[i + 1] - given.text_offsets[i])};
  column.data.texts = std::move(spans);
  column.data.type = recording::kText;
  return column;
}

Column column_of(const Arguments& read, const tmaops_recording_column& given, const std::string& argument) {
  read.place(argument + ".name", given.name);
  read.place(argument + ".type", given.type);
  Column column{given.name};
  column.missing = given.missing;
  const std::span<const std::int64_t> shape = read.list(argument + ".shape", given.shape, given.dimensions);
  Array& array = column.data;
  array.shape.assign(shape.begin(), shape.end());
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; }))
    read.checks().fail(ErrorCode::bad_parameter, argument + ".shape", "an extent below 0", "0 or more");
  if (given.channel_names != nullptr)
    for (const char* name : read.list(argument + ".channel_names", given.channel_names, column.width()))
      column.channel_names.push_back(text(name));
  const std::string_view type = given.type;
  if (type == "rows" && given.data == nullptr) {
    std::vector<std::int64_t> rows(shape.empty() ? 0 : static_cast<std::size_t>(shape[0]));
    std::iota(rows.begin(), rows.end(), 0);
    array = recording::make_array(rows, {static_cast<std::int64_t>(rows.size())});
    array.type = *recording::element_type(type);
    return column;
  }
  if (array.size() != 0) read.place(argument + ".data", given.data);
  array.data = borrowed<std::byte>(given.data);
  if (type == "utf8") return with_texts(read, std::move(column), given, argument);
  const bool bfloat16 = type == "bf16";
  const auto known = recording::element_type(bfloat16 ? "<f2" : type);
  if (!known)
    read.checks().fail(ErrorCode::unsupported_file_dtype, argument + ".type", std::string(type),
                       "a type of tmaops_recording_column");
  array.type = *known;
  array.type.bfloat16 = bfloat16;
  return column;
}

std::vector<Column> columns_of(const Arguments& read, const std::string& argument, const tmaops_recording_column* given,
                               std::int64_t count) {
  std::vector<Column> made;
  for (const tmaops_recording_column& column : read.list(argument, given, count)) {
    made.push_back(column_of(read, column, argument + "[" + std::to_string(made.size()) + "]"));
    made.back().source = made.size() - 1;
  }
  return made;
}

/// A recording as given, and what is asked of it.
struct Job {
  recording::Options options{};
  recording::Defaults defaults{};
  recording::Recording recording{};
  std::optional<recording::GivenTargets> targets{};
  std::vector<recording::Note> warnings{};
};

std::string word(const Arguments& read, std::string_view argument, const char* given,
                 std::initializer_list<std::string_view> known) {
  std::string name = text(given);
  if (!name.empty() && std::ranges::find(known, name) == known.end())
    read.checks().fail(ErrorCode::bad_parameter, argument, name, "one of " + joined(known, ", "));
  return name;
}

std::optional<recording::TimeUnit> unit_of(const Arguments& read, std::string_view argument, const char* given) {
  return recording::parse_time_unit(word(read, argument, given, {"s", "ms", "us", "ns"}));
}

recording::Options recording_options(const Arguments& read, const tmaops_recording_options& given) {
  recording::Options options;
  if (given.hz != 0) options.hz = given.hz;
  options.start = text(given.start);
  options.end = text(given.end);
  options.align = given.align != 0;
  options.snap = given.snap;
  options.columns = text(given.columns);
  for (const char* mode : read.list("modes", given.modes, given.mode_count)) options.modes.push_back(text(mode));
  if (given.max_gap != 0) options.max_gap = given.max_gap;
  options.outside = word(read, "outside", given.outside, {"hold", "nan", "extrapolate", "error", "drop"});
  options.duplicates = word(read, "duplicates", given.duplicates, {"error", "last"});
  options.offset = given.offset;
  options.sort = given.sort != 0;
  options.strict = given.strict != 0;
  options.time_unit = text(given.time_unit);
  options.group = text(given.group);
  return options;
}

recording::GivenTargets given_targets(const Arguments& read, const tmaops_recording_options& given) {
  const bool like = given.like != 0;
  recording::GivenTargets targets{.option = like ? "--like" : "--times",
                                  .unit_option = like ? "--like-unit" : "--times-unit",
                                  .where = like ? "like" : "times"};
  recording::TimeOptions times{.unit = unit_of(read, "targets_unit", given.targets_unit),
                               .name = text(given.targets_name),
                               .only_times = true,
                               .option = "--targets-array"};
  if (!times.unit) times.unit = unit_of(read, "time_unit", given.time_unit);
  recording::Recording made = recording::from_arrays(columns_of(read, "targets", given.targets, given.target_columns),
                                                     targets.where, times, "");
  targets.times = std::move(made.times);
  targets.warnings = std::move(made.warnings);
  targets.time = std::move(made.time);
  const auto offsets = read.list("target_offsets", given.target_offsets, given.target_offset_count);
  targets.offsets.assign(offsets.begin(), offsets.end());
  return targets;
}

Job make_job(const Arguments& read, const tmaops_recording_rules* rules, const tmaops_recording_column* columns,
             std::int64_t count, const tmaops_recording_options* options) {
  const auto given = read.options<tmaops_recording_options>(options, TMAOPS_RECORDING_OPTIONS);
  Job job;
  job.options = recording_options(read, given);
  job.defaults.drop_gaps = given.drop_gaps != 0;
  recording::TimeOptions times{.unit = unit_of(read, "time_unit", given.time_unit), .name = text(given.time)};
  if (rules != nullptr) {
    const recording::TimeColumn& decided = rules->rules.time.column;
    times.name = decided.name;
    if (decided.form == recording::TimeForm::number) times.unit = decided.unit;
  }
  const std::string where = text(given.where);
  job.recording = recording::from_arrays(columns_of(read, "columns", columns, count),
                                         where.empty() ? "recording" : where, times, text(given.offsets_array));
  const auto offsets = read.list("offsets", given.offsets, given.offset_count);
  if (!offsets.empty())
    job.recording.offsets =
        recording::array_offsets(recording::make_array(offsets, {given.offset_count}), "offsets", job.recording.rows());
  if (rules != nullptr) {
    job.recording.time.choice = rules->rules.time.column.choice;
    job.recording.time.unit_source = rules->rules.time.column.unit_source;
  }
  if (given.target_columns != 0) job.targets = given_targets(read, given);
  return job;
}

/// The result's arrays as C reads them.
void expose(tmaops_recording_result& result) {
  result.text_offsets.resize(result.arrays.size());
  result.texts.resize(result.arrays.size());
  for (std::size_t i = 0; i < result.arrays.size(); ++i) {
    const Column& column = result.arrays[i];
    const Array& array = column.data;
    tmaops_recording_column made{};
    made.name = column.name.c_str();
    made.type = array.ragged() ? "utf8" : array.type.bfloat16 ? "bf16" : array.type.descr.c_str();
    made.data = array.data.get();
    if (array.ragged()) {
      result.text_offsets[i].push_back(0);
      for (std::int64_t row = 0; row < array.size(); ++row) {
        result.texts[i] += ragged_text(array, row);
        result.text_offsets[i].push_back(static_cast<std::int64_t>(result.texts[i].size()));
      }
      made.data = result.texts[i].data();
      made.text_offsets = result.text_offsets[i].data();
    }
    made.shape = array.shape.data();
    made.dimensions = static_cast<std::int64_t>(array.shape.size());
    made.missing = column.missing;
    made.source = column.source == Column::kMade ? -1 : static_cast<std::int64_t>(column.source);
    result.columns.push_back(made);
  }
}

}  // namespace
}  // namespace tmaops::c_api

using namespace tmaops::c_api;  // NOLINT(google-build-using-namespace): this file is a part of it
namespace recording = tmaops::recording;

int tmaops_recording_decide(const tmaops_recording_column* columns, int64_t count,
                            const tmaops_recording_options* options, tmaops_recording_rules** rules) {
  return status_of_call("recording_decide", [&](const Arguments& read) {
    read.place("rules", rules);
    Job job = make_job(read, nullptr, columns, count, options);
    auto made = std::make_unique<tmaops_recording_rules>();
    const recording::Policies policies = make_policies(job.options, job.defaults);
    made->rules = decide(job.recording, job.options, policies, nullptr, job.warnings);
    made->rules.time = summarise_times(job.recording, measure_steps(job.recording, policies.max_gap));
    if (job.options.hz)
      warn_of_aliasing(job.recording, make_targets(job.options, parse_window(job.options), job.recording, nullptr),
                       made->rules.plan, policies.duplicates, job.warnings);
    check_strict(job.options, job.warnings);
    made->report = made->rules.json(job.warnings);
    *rules = made.release();
  });
}

const char* tmaops_recording_rules_report(const tmaops_recording_rules* rules) {
  return rules ? rules->report.c_str() : nullptr;
}
void tmaops_recording_rules_destroy(tmaops_recording_rules* rules) { delete rules; }

int tmaops_recording_resample(const tmaops_recording_rules* rules, const tmaops_recording_column* columns,
                              int64_t count, const tmaops_recording_options* options,
                              tmaops_recording_result** result) {
  return status_of_call("resample", [&](const Arguments& read) {
    read.place("result", result);
    Job job = make_job(read, rules, columns, count, options);
    const recording::Run run =
        resample_recording(job.recording, job.options, job.defaults, job.targets ? &*job.targets : nullptr,
                           job.warnings, rules ? &rules->rules : nullptr);
    check_strict(job.options, job.warnings);
    auto made = std::make_unique<tmaops_recording_result>();
    made->report = run.json(job.warnings);
    replace_rows(job.recording, run.targets, run.rules.plan, run.table, run.selection, run.with_valid);
    made->arrays = to_arrays(job.recording);
    made->offsets = job.recording.offsets;
    expose(*made);
    *result = made.release();
  });
}

const tmaops_recording_column* tmaops_recording_result_columns(const tmaops_recording_result* result, int64_t* count) {
  if (count != nullptr) *count = result ? static_cast<int64_t>(result->columns.size()) : 0;
  return result ? result->columns.data() : nullptr;
}
const int64_t* tmaops_recording_result_offsets(const tmaops_recording_result* result, int64_t* count) {
  if (count != nullptr) *count = result ? static_cast<int64_t>(result->offsets.size()) : 0;
  return result ? result->offsets.data() : nullptr;
}
const char* tmaops_recording_result_report(const tmaops_recording_result* result) {
  return result ? result->report.c_str() : nullptr;
}
void tmaops_recording_result_destroy(tmaops_recording_result* result) { delete result; }

int tmaops_recording_reads_text(const char* name) { return name != nullptr && recording::reads_text(name); }
