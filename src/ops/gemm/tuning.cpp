#include "ops/gemm/tuning.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>

#include "core/fail.hpp"
#include "core/spelling.hpp"
namespace tmaops::ops::gemm {
namespace {

constexpr std::string_view kHead =
    "# What was fastest for gemm, by GPU and case. Written by `tmaops bench --tune`, read whenever a case is planned.\n"
    "schema: 1\n"
    "choices:\n";
constexpr std::array<std::string_view, 5> kKeys = {"gpu", "case", "dtype", "variant", "us"};

/// Where in the file a mistake is.
struct Line {
  const std::string& source;
  int number;

  [[noreturn]] void fail(std::string got, std::string needed) const {
    tmaops::fail(ErrorCode::bad_tuning, source + ":" + std::to_string(number), got, needed);
  }
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

/// The values of "- {gpu: ..., case: ..., dtype: ..., variant: ..., us: ...}", in the order of kKeys.
std::array<std::string, kKeys.size()> read_values(std::string_view text, const Line& line) {
  if (!text.starts_with("- {") || !text.ends_with('}'))
    line.fail("'" + std::string(text) + "'", "- {gpu: ..., case: ..., dtype: ..., variant: ..., us: ...}");
  text = text.substr(3, text.size() - 4);
  std::array<std::string, kKeys.size()> values;
  for (const std::string& part : split_list(text, ',')) {
    const std::string_view pair = trimmed(part);
    const std::size_t colon = pair.find(": ");
    const auto* const key = std::ranges::find(kKeys, pair.substr(0, std::min(colon, pair.size())));
    if (colon == std::string_view::npos || key == kKeys.end())
      line.fail("'" + std::string(pair) + "'", "one of gpu, case, dtype, variant, us, and ': ' before its value");
    std::string& value = values[static_cast<std::size_t>(key - kKeys.begin())];
    if (!value.empty()) line.fail(std::string(*key) + " twice", "each key once");
    value = trimmed(pair.substr(colon + 2));
  }
  for (std::size_t i = 0; i < kKeys.size(); ++i)
    if (values[i].empty()) line.fail("no " + std::string(kKeys[i]), "a value for each key");
  return values;
}

/// Refuses what names no product ("RC 1024", "RC 64x4096x7168 batch=2") and no types ("f16", "f16->f32").
void check_product(const std::string& product, const std::string& types, const Line& line) {
  const auto number = [](const std::string& text) { return parse_integer(text).has_value(); };
  const std::vector<std::string> parts = split_list(product, ' ');
  const std::vector<std::string> extents = parts.size() < 2 ? parts : split_list(parts[1], 'x');
  const bool batch = parts.size() < 3 || (parts[2].starts_with("batch=") && number(parts[2].substr(6)));
  if (!parse_gemm_mode(parts[0]) || parts.size() > 3 || extents.size() == 2 || extents.size() > 3 ||
      !std::ranges::all_of(extents, number) || !batch)
    line.fail("case '" + product + "'", "a mode and a size: 'RC 1024' or 'RC 64x4096x7168'");
  const std::size_t arrow = types.find("->");
  if (!parse_dtype(types.substr(0, arrow)) || (arrow != std::string::npos && !parse_dtype(types.substr(arrow + 2))))
    line.fail("dtype '" + types + "'", "f16 or bf16, with -> and D's type where that differs");
}

TunedChoice read_choice(std::string_view text, const Line& line) {
  auto [gpu, product, types, choice, us] = read_values(text, line);
  check_product(product, types, line);
  const auto microseconds = parse_number(us);
  if (!microseconds || !(*microseconds > 0)) line.fail("us '" + us + "'", "a time above 0");
  return {gpu, product, types, choice, *microseconds};
}

/// A variable of the environment; empty when it is not set.
std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

}  // namespace

TuningTable TuningTable::parse(std::string_view text, const std::string& source) {
  TuningTable table;
  constexpr std::array<std::string_view, 2> kHeads = {"schema: 1", "choices:"};
  std::size_t head = 0;
  int number = 0;
  for (const std::string& each : split_list(text, '\n')) {
    const std::string_view content = trimmed(each);
    const Line line{source, ++number};
    if (content.empty() || content.starts_with('#')) continue;
    if (head < kHeads.size()) {
      if (content != kHeads[head]) line.fail("'" + std::string(content) + "'", std::string(kHeads[head]));
      ++head;
      continue;
    }
    TunedChoice choice = read_choice(content, line);
    if (table.find(choice.gpu, choice.product, choice.types) != nullptr)
      line.fail(choice.product + " " + choice.types + " of " + choice.gpu + " a second time", "each case once");
    table.choices_.push_back(std::move(choice));
  }
  if (head < kHeads.size()) Line{source, number}.fail("no table", "schema: 1, then choices: and a line per case");
  return table;
}

TuningTable TuningTable::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code status;
  if (!file || std::filesystem::is_directory(path, status))
    fail(ErrorCode::cannot_read, path, "", "a table of gemm's choices, as `tmaops bench --tune` writes it");
  return parse(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

void TuningTable::set(TunedChoice choice) {
  if (const TunedChoice* known = find(choice.gpu, choice.product, choice.types))
    choices_[static_cast<std::size_t>(known - choices_.data())] = std::move(choice);
  else
    choices_.push_back(std::move(choice));
}

const TunedChoice* TuningTable::find(std::string_view gpu, std::string_view product, std::string_view types) const {
  const auto found = std::ranges::find_if(
      choices_, [&](const TunedChoice& one) { return one.product == product && one.types == types && one.gpu == gpu; });
  return found == choices_.end() ? nullptr : &*found;
}

std::string TuningTable::text() const {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << kHead;
  for (const TunedChoice& one : choices_)
    text << "  - {gpu: " << one.gpu << ", case: " << one.product << ", dtype: " << one.types
         << ", variant: " << one.choice << ", us: " << one.microseconds << "}\n";
  return text.str();
}

std::string tuned_product(const Problem& row_major) {
  const auto mode = row_major.mode();
  std::string name(mode ? to_string(*mode) : "");
  name += " " + std::to_string(row_major.m);
  if (row_major.m != row_major.n || row_major.n != row_major.k)
    name += "x" + std::to_string(row_major.n) + "x" + std::to_string(row_major.k);
  if (row_major.batch != 1) name += " batch=" + std::to_string(row_major.batch);
  return name;
}

std::string tuned_types(const Problem& row_major) {
  std::string name(to_string(row_major.a.dtype));
  if (row_major.d.dtype != row_major.a.dtype) name += "->" + std::string(to_string(row_major.d.dtype));
  return name;
}

std::string tuning_path(const std::string& option) {
  const std::string named = option.empty() ? environment("TMAOPS_GEMM_TUNING") : option;
  if (!named.empty()) return named == "off" ? "" : named;
  std::filesystem::path cache = environment("XDG_CACHE_HOME");
  if (!cache.is_absolute()) {  // the XDG rule: a relative one is not valid
    cache = environment("HOME");
    if (cache.empty()) return {};
    cache /= ".cache";
  }
  return (cache / "tmaops" / "gemm_tuning.yaml").string();
}

std::shared_ptr<const TuningTable> tuning_table(const std::string& option) {
  using Tables = std::map<std::string, std::shared_ptr<const TuningTable>, std::less<>>;
  static std::mutex mutex;
  static Tables tables;
  static Tables by_source;  // what tuning_path() makes a path of, which takes longer than the rest of a call
  std::string source = option.empty() ? environment("TMAOPS_GEMM_TUNING") : option;
  const bool named = !source.empty();
  if (!named) source = "\n" + environment("XDG_CACHE_HOME") + "\n" + environment("HOME");
  const std::scoped_lock lock(mutex);
  if (const auto known = by_source.find(source); known != by_source.end()) return known->second;
  const std::string path = tuning_path(option);
  if (path.empty()) return by_source[source] = nullptr;
  if (const auto known = tables.find(path); known != tables.end()) return by_source[source] = known->second;
  std::error_code status;
  const bool missing = !named && !std::filesystem::exists(path, status);
  auto table = missing ? nullptr : std::make_shared<const TuningTable>(TuningTable::read(path));
  tables.emplace(path, table);
  return by_source[source] = table;
}

}  // namespace tmaops::ops::gemm
