// `tmaops explain E012`: the page of an error; without an argument the whole catalogue. It knows the rules of tensor
// maps and of the executor, and CUDA's results, by name too.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/cuda_results.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "executor/rules.hpp"
#include "offers/console.hpp"
#include "tmaops/error.hpp"
#include "tmaops/tensor_map.hpp"

namespace tmaops::cli {
namespace {

nlohmann::ordered_json to_json(const ErrorPage& page) {
  return {{"number", page.number}, {"name", page.name},        {"exit_code", page.exit_code},
          {"title", page.title},   {"text", page.explanation}, {"mend", page.mend}};
}

std::string page_text(const ErrorPage& page, bool color) {
  std::string text = styled(std::string(page.number) + " " + std::string(page.title), Style::bold, color);
  text += "\n  name:      " + std::string(page.name) + "\n  exit code: " + std::to_string(page.exit_code);
  text += "\n\n" + std::string(page.explanation) + "\n\nWhat to do: " + std::string(page.mend) + "\n";
  return text;
}

/// "E012" of 12, e12, E012; anything else as it is.
std::string number_of(const std::string& code) {
  const std::string digits = code.substr(!code.empty() && (code[0] == 'E' || code[0] == 'e') ? 1 : 0);
  if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos) return code;
  return "E" + std::string(3 - digits.size(), '0') + digits;
}

/// A page about what is no error of the catalogue: its title, its lines, its text.
struct OtherPage {
  std::string title;
  std::vector<std::pair<std::string, std::string>> lines;
  std::string text;
};

std::optional<OtherPage> find_other_page(const std::string& name) {
  for (const tma::Rule& rule : tma::rules())
    if (rule.id == name)
      return OtherPage{"rule " + name,
                       {{"severity", std::string(to_string(rule.severity))},
                        {"applies_to", std::string(to_string(rule.scope))},
                        {"driver", std::string(to_string(rule.driver))},
                        {"source", std::string(rule.source)}},
                       std::string(rule.text) + ". `tmaops tensormap` checks it; docs/tma.md explains it."};
  for (const executor::RulePage& rule : executor::kRules)
    if (rule.id == name) return OtherPage{"rule " + name, {{"source", "docs/executor.md"}}, std::string(rule.text)};
  if (const CudaResult* result = find_cuda_result(name))
    return OtherPage{name, {{"number", std::to_string(result->number)}}, std::string(result->cause)};
  return std::nullopt;
}

std::string other_text(const OtherPage& page, bool color) {
  std::string text = styled(page.title, Style::bold, color) + "\n";
  for (const auto& [key, value] : page.lines) text += "  " + key + ": " + value + "\n";
  return text + "\n" + page.text + "\n";
}

nlohmann::ordered_json other_json(const OtherPage& page) {
  nlohmann::ordered_json json{{"title", page.title}};
  for (const auto& [key, value] : page.lines) json[key] = value;
  json["text"] = page.text;
  return json;
}

const ErrorPage& find_page(const std::string& code) {
  const std::string number = number_of(code);
  std::vector<std::string_view> names;
  for (const ErrorPage& page : error_catalogue()) {
    if (page.number == number || page.name == code) return page;
    names.push_back(page.name);
  }
  for (const tma::Rule& rule : tma::rules()) names.push_back(rule.id);
  for (const executor::RulePage& rule : executor::kRules) names.push_back(rule.id);
  for (const CudaResult& result : cuda_results()) names.insert(names.end(), {result.driver, result.runtime});
  const std::string hint = did_you_mean(code, names);
  fail(ErrorCode::usage, "explain: CODE", "'" + code + "'",
       "a number such as E012, or a name such as dtype_mismatch, box_inner_16 or CUDA_ERROR_INVALID_VALUE",
       hint.empty() ? "`tmaops explain` lists all of them." : hint);
}

int explain(const Globals& globals, const std::string& code) {
  const bool color = use_color(globals, Stream::data);
  if (const auto other = find_other_page(code)) {
    print_data(globals.json ? other_json(*other).dump(2) + "\n"
                            : wrapped(other_text(*other, color), line_width(Stream::data)));
    return 0;
  }
  if (!code.empty()) {
    const ErrorPage& page = find_page(code);
    print_data(globals.json ? to_json(page).dump(2) + "\n" : wrapped(page_text(page, color), line_width(Stream::data)));
    return 0;
  }
  if (globals.json) {
    auto pages = nlohmann::ordered_json::array();
    for (const ErrorPage& page : error_catalogue()) pages.push_back(to_json(page));
    print_data(pages.dump(2) + "\n");
    return 0;
  }
  std::string text;
  for (const ErrorPage& page : error_catalogue())
    text += styled(page.number, Style::bold, color) + "  " + std::string(page.title) +
            styled("  (" + std::string(page.name) + ")", Style::faint, color) + "\n";
  print_data(text);
  return 0;
}

}  // namespace

void add_explain_command(CLI::App& app, Globals& globals) {
  auto code = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "explain", "Explain an error, a rule of tensor maps or the executor, or a result of CUDA; or list all errors");
  command->add_option("CODE", *code, "Number (E012) or name (dtype_mismatch, box_inner_16, CUDA_ERROR_INVALID_VALUE)");
  set_run(*command, globals, [&globals, code] { return explain(globals, *code); });
}

}  // namespace tmaops::cli
