#include "bench/run/report.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "bench/measure/machine.hpp"
#include "core/fail.hpp"
#include "tmaops/version.hpp"

namespace tmaops::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Four significant digits more than any clock has; keeps the files readable.
double rounded(double value) {
  if (value == 0) return 0;
  const double scale = std::pow(10.0, 6 - std::ceil(std::log10(std::abs(value))));
  return std::isfinite(scale) ? std::round(value * scale) / scale : value;
}

/// Null, or the rounded number.
Json number(std::optional<double> value) { return value ? Json(rounded(*value)) : Json(nullptr); }

Json counters_json(const Counters& counters) {
  Json json{{"kernels", counters.kernels}, {"runs", counters.runs}};
  Json spread = Json::object();
  for (std::size_t i = 0; i < kCounters.size(); ++i) {
    json[kCounters[i].name] = rounded(counters.values[i]);
    spread[kCounters[i].name] = {rounded(counters.p10[i]), rounded(counters.p90[i])};
  }
  json["p10_p90"] = std::move(spread);
  if (const auto& all = counters.back_to_back) {
    Json together{{"calls", all->calls}};
    for (std::size_t i = 0; i < kBackToBackCounters; ++i) together[kCounters[i].name] = rounded(all->values[i]);
    json["back_to_back"] = std::move(together);
  }
  return json;
}

Json loads_json(const Report& report, const Row& row) {
  const double seconds = row.us->median * 1e-6;
  const TileLoads& loads = *row.loads;
  Json json{{"count", loads.count},
            {"per_second", rounded(loads.count / seconds)},
            {"ns_each", rounded(seconds * 1e9 / loads.count)},
            {"vs_manual", number(vs_manual(report, row))}};
  json["cycles_per_block"] = nullptr;
  if (loads.cycles)
    json["cycles_per_block"] = {{"mean", rounded(loads.cycles->mean)},
                                {"min", loads.cycles->min},
                                {"max", loads.cycles->max},
                                {"blocks", loads.cycles->n}};
  return json;
}

Json row_json(const Report& report, const Row& row) {
  Json json{{"operator", row.info.op},
            {"case", row.info.name},
            {"implementation", row.implementation},
            {"kind", to_string(row.kind)}};
  json["selected"] = row.selected.empty() ? Json(nullptr) : Json(row.selected);
  if (row.code) json["code"] = {{"digest", row.code->digest}, {"compiler", row.code->compiler}};
  json["dtype"] = row.info.dtype;
  json["device"] = to_string(row.info.device);
  json["temperature"] = row.temperature.empty() ? Json(nullptr) : Json(row.temperature);
  for (const char* key : {"us", "gbps", "tflops"}) json[key] = nullptr;
  if (row.us) {
    json["us"] = {{"median", rounded(row.us->median)}, {"p10", rounded(row.us->p10)},
                  {"p90", rounded(row.us->p90)},       {"n", row.us->n},
                  {"mean", rounded(row.us->mean)},     {"min", rounded(row.us->min)},
                  {"max", rounded(row.us->max)},       {"std", rounded(row.us->deviation)}};
    json["gbps"] = rounded(row.gbps());
    json["tflops"] = rounded(row.tflops());
  }
  json["of_copy"] = number(of_copy(report, row));
  json["of_peak"] = number(row.of_peak());
  json["sm_mhz"] = nullptr;  // a CPU has no SM clock
  json["clock_held"] = nullptr;
  if (row.clocks) {
    json["sm_mhz"] = std::round(row.clocks->sm_mhz);
    json["clock_held"] = Json::object();
    for (const auto& [reason, share] : row.clocks->held) json["clock_held"][reason] = rounded(share);
  }
  for (const char* key : {"host_us", "host_fresh_us", "host_launch_us"}) json[key] = nullptr;
  if (row.host) {
    json["host_us"] = rounded(row.host->call_us);
    json["host_fresh_us"] = number(row.host->fresh_us);
    json["host_launch_us"] = rounded(row.host->launch_us);
  }
  json["error"] = {{"relative", row.error.relative}, {"max", row.error.max}};
  json["verified"] = row.verified;
  json["compared"] = rounded(row.error.compared);
  if (row.us && row.loads) json["loads"] = loads_json(report, row);
  if (row.counters) json["counters"] = counters_json(*row.counters);
  const Json values = json.flatten();
  for (const auto& [key, value] : values.items())
    if (value.is_number_float() && !std::isfinite(value.get<double>()))
      fail(ErrorCode::internal, "result row " + row.info.op + " " + row.info.name + " " + row.implementation,
           key + " that is not finite", {});
  return json;
}

void write(const Json& value, const std::string& indent, std::string& text) {
  const bool object = value.is_object();
  if (value.empty() || !(object || value.is_array())) {
    text += value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  const std::string inner = indent + "  ";
  std::string separator = object ? "{\n" : "[\n";
  for (const auto& [key, item] : value.items()) {
    text += separator + inner;
    if (object) {
      text += Json(key).dump() + ": ";
      write(item, inner, text);
    } else {
      text += item.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    separator = ",\n";
  }
  text += "\n" + indent + (object ? "}" : "]");
}

[[noreturn]] void fail_schema(const std::string& source, const std::string& where, const std::string& needed) {
  fail(ErrorCode::bad_format, source + ": " + where, "not a result file of schema 1", needed);
}

bool is_text(const Json& value) { return value.is_string(); }
bool is_text_or_null(const Json& value) { return value.is_string() || value.is_null(); }
bool is_number(const Json& value) { return value.is_number(); }
bool is_number_or_null(const Json& value) { return value.is_number() || value.is_null(); }
bool is_object(const Json& value) { return value.is_object(); }
bool is_object_or_null(const Json& value) { return value.is_object() || value.is_null(); }
bool is_true_or_false(const Json& value) { return value.is_boolean(); }
bool is_kind(const Json& value) { return value == "variant" || value == "peer" || value == "ceiling"; }
bool is_above_0(const Json& value) { return value.is_number() && value.get<double>() > 0; }

struct Rule {
  std::initializer_list<const char*> keys;
  bool (*holds)(const Json& value);
  const char* needed;
};

/// The first key that breaks a rule is an error.
void expect(const Json& object, std::initializer_list<Rule> rules, const std::string& source,
            const std::string& where) {
  for (const Rule& rule : rules)
    for (const char* key : rule.keys)
      if (!object.contains(key) || !rule.holds(object[key])) fail_schema(source, where + key, rule.needed);
}

void check_row(const Json& row, const std::string& source, const std::string& where) {
  if (!row.is_object()) fail_schema(source, where, "an object");
  expect(row,
         {{{"operator", "case", "implementation", "dtype", "device"}, is_text, "a text"},
          {{"kind"}, is_kind, "variant, peer or ceiling"},
          {{"selected", "temperature"}, is_text_or_null, "a text or null"},
          {{"gbps", "tflops", "sm_mhz"}, is_number_or_null, "a number or null"},
          {{"us"}, is_object_or_null, "an object or null"},
          {{"error"}, is_object, "an object"},
          {{"verified"}, is_true_or_false, "true or false"}},
         source, where + ".");
  for (const char* key : {"host_us", "host_fresh_us", "host_launch_us"})  // older files lack some
    if (row.contains(key) && !is_number_or_null(row[key])) fail_schema(source, where + "." + key, "a number or null");
  if (row["us"].is_object())  // a time of 0 would pass every comparison
    expect(row["us"], {{{"median", "p10", "p90", "n"}, is_above_0, "a number above 0"}}, source, where + ".us.");
  expect(row["error"], {{{"relative", "max"}, is_number, "a number"}}, source, where + ".error.");
}

}  // namespace

std::string reason_of(const Error& error) {
  const ErrorDetails& details = error.details();
  const std::string got = details.got.empty() || details.needed.empty() ? details.got : details.got + "; needed: ";
  return details.needed.empty() && got.empty() ? std::string(error_page(error.code()).title) : got + details.needed;
}

double Row::gbps() const { return us && us->median > 0 ? info.floor_bytes / us->median * 1e-3 : 0; }
double Row::tflops() const { return us && us->median > 0 ? info.flops / us->median * 1e-6 : 0; }

std::optional<double> Row::of_peak() const {
  if (!us || !(memory_peak > 0) || (kind == Kind::ceiling && implementation != "copy")) return {};
  return gbps() / memory_peak;
}

bool same_case(const Row& a, const Row& b) {
  return a.info.op == b.info.op && a.info.name == b.info.name && a.info.dtype == b.info.dtype &&
         a.temperature == b.temperature;
}

const Row* row_beside(const Report& report, const Row& row, std::string_view implementation) {
  for (const Row& other : report.rows)
    if (other.us && other.implementation == implementation && same_case(other, row)) return &other;
  return nullptr;
}

std::optional<double> of_copy(const Report& report, const Row& row) {
  const Row* copy = row_beside(report, row, "copy");
  if (!row.us || row.kind == Kind::ceiling || copy == nullptr || !(copy->gbps() > 0)) return {};
  return row.gbps() / copy->gbps();
}

std::optional<double> vs_manual(const Report& report, const Row& row) {
  if (!row.us || !row.loads || row.kind == Kind::ceiling || !(row.us->median > 0)) return {};
  std::optional<double> manual;
  for (const Row& other : report.rows) {
    if (!other.us || !same_case(other, row) || other.implementation.ends_with(kDependentSuffix)) continue;
    if (std::ranges::find(row.loads->manual, other.selected) == row.loads->manual.end()) continue;
    if (!manual || other.us->median < *manual) manual = other.us->median;
  }
  if (!manual) return {};
  return *manual / row.us->median;
}

int Report::exit_code() const {
  if (status == Status::partial) return 130;
  if (!failed.empty()) return 1;
  int code = 0;
  for (const Refusal& refusal : refused)
    if (refusal.requested) code = std::max(code, refusal.exit_code);
  const bool done = std::ranges::any_of(rows, [](const Row& row) { return row.kind == Kind::variant; });
  return code != 0 && done ? 3 : code;
}

Json to_json(const Report& report, const Json& config) {
  Json document{{"schema", 1}, {"status", report.status == Status::complete ? "complete" : "partial"}};
  document["machine"] = machine_json();
  document["revision"] = revision();
  document["config"] = config;
  document["rows"] = Json::array();
  for (const Row& row : report.rows) document["rows"].push_back(row_json(report, row));
  document["failed"] = Json::array();
  for (const Row& row : report.failed)
    document["failed"].push_back({{"operator", row.info.op},
                                  {"case", row.info.name},
                                  {"dtype", row.info.dtype},
                                  {"implementation", row.implementation},
                                  {"problem", row.error.problem}});
  document["refused"] = Json::array();
  for (const Refusal& refusal : report.refused)
    document["refused"].push_back({{"operator", refusal.info.op},
                                   {"case", refusal.info.name},
                                   {"dtype", refusal.info.dtype},
                                   {"implementation", refusal.implementation},
                                   {"reason", refusal.reason}});
  return document;
}

std::string to_text(const Json& document) {
  std::string text;
  write(document, "", text);
  return text + "\n";
}

void check_schema(const Json& document, const std::string& source) {
  if (!document.is_object()) fail_schema(source, "document", "an object");
  expect(document,
         {{{"schema"}, [](const Json& value) { return value == 1; }, "1"},
          {{"machine", "config"}, is_object, "an object"},
          {{"revision"}, is_text, "a text"},
          {{"rows"}, [](const Json& value) { return value.is_array(); }, "a list"}},
         source, "");
  std::size_t index = 0;
  for (const Json& row : document["rows"]) check_row(row, source, "rows[" + std::to_string(index++) + "]");
}

}  // namespace tmaops::bench
