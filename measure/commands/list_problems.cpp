// `tmaops list -p PROBLEM`: which variant would run and why the others refuse.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/workloads/wanted_variants.hpp"
#include "bench/workloads/workload.hpp"
#include "commands/commands.hpp"
#include "commands/request.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "offers/console.hpp"
#include "offers/table.hpp"
#include "offers/variant_text.hpp"
#include "tmaops/error.hpp"
#include "tmaops/registry.hpp"

namespace tmaops::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Whether a word of the command line is a configuration and no operator, as bench and verify take one.
bool is_configuration(const std::string& word) {
  const auto known = operators();
  const auto shipped = shipped_configurations();
  std::error_code status;
  return std::ranges::find(known, word) == known.end() &&
         (word == "-" || word.ends_with(".yaml") || word.ends_with(".yml") || word.find('/') != std::string::npos ||
          std::filesystem::is_regular_file(word, status) || std::ranges::find(shipped, word) != shipped.end());
}

struct ListArguments : Arguments {
  std::vector<std::string> words{};  // of the tool's `list`: operators, or a configuration
};

/// Takes the configuration out of the words. Throws Error usage when there are two.
void take_configuration(ListArguments& arguments) {
  for (const std::string& word : arguments.words) {
    if (!is_configuration(word)) continue;
    if (!arguments.config.empty())
      fail(ErrorCode::usage, "list", "'" + display_text(word) + "' beside '" + display_text(arguments.config) + "'",
           "one configuration");
    arguments.config = word;
  }
  std::erase_if(arguments.words, is_configuration);
}

int list_problems(const Globals& globals, const ListArguments& arguments) {
  Arguments with_operators = arguments;
  for (const std::string& name : arguments.words) with_operators.given.add({"operators", name, {"list"}});
  const Request request = read_request(with_operators);
  Json json = Json::array();
  std::string text;
  const bool color = use_color(globals, Stream::data);
  for (const Settings& problem : request.problems) {
    const Device device = resolve_device(request.options.device, problem);
    const auto workload = bench::make_workload(problem, device);
    const auto variants = workload->variants();
    const bench::WantedVariants wanted = bench::wanted_variants(problem, variants, false);
    std::vector<std::string_view> runs;  // what `bench` would run
    for (const bench::NamedVariant& one : wanted.named)
      if (variants[one.index].support) runs.push_back(one.name);
    if (wanted.all && !wanted.chosen)
      for (const bench::VariantChoice& variant : variants)
        if (variant.support) runs.push_back(variant.info.name);
    std::string chosen;
    try {
      if (wanted.chosen) chosen = workload->selected();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::variant_refuses) throw;  // every variant refuses: the table says why
    }
    if (!chosen.empty()) runs.insert(runs.begin(), chosen);
    const bench::CaseInfo& info = workload->info();
    Json entry{{"operator", info.op}, {"case", info.name}, {"dtype", info.dtype}, {"device", to_string(device)}};
    entry["selected"] = runs.empty() ? Json(nullptr) : Json(runs.front());
    entry["variants"] = Json::array();
    Table table("  variant|device|takes it|why");
    for (const bench::VariantChoice& variant : variants) {
      const bool is_chosen = std::ranges::find(runs, variant.info.name) != runs.end();
      Json one = variant_json(variant.info);
      one["takes"] = variant.support.ok;
      one["reason"] = variant.support.ok ? Json(nullptr) : Json(variant.support.reason);
      entry["variants"].push_back(std::move(one));
      table.add({{"  " + std::string(variant.info.name), is_chosen ? Style::bold : Style::plain},
                 {device_name(variant.info)},
                 {is_chosen         ? "chosen"
                  : variant.support ? "yes"
                                    : "no",
                  variant.support ? Style::good : Style::plain},
                 {variant.support ? std::string(variant.info.description) : variant.support.reason}});
    }
    json.push_back(std::move(entry));
    text += (text.empty() ? "" : "\n") + styled(info.op + " " + info.name + " " + info.dtype, Style::bold, color) +
            " on " + to_string(device) + "\n" + table.text(color, line_width(Stream::data));
  }
  print_data(globals.json ? json.dump(2) + "\n" : text);
  return 0;
}

}  // namespace

void add_problems_to_list(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<ListArguments>();
  CLI::App* command = app.get_subcommand("list");
  command->description("List operators and variants; with -p, which one would run and why");
  const CLI::Option* words =
      command->get_option("OPERATOR")->description("Only these operators; or a configuration, as for bench");
  command->add_option("-p,--problem", arguments->problems, "A problem: 'gemm: {mode: RC, size: 256}' (may be repeated)")
      ->allow_extra_args(false);
  command->add_option("--config", arguments->config, "The problems of a configuration");
  add_given(*command, *arguments, "device", "Where the problems would run")->type_name("{auto,cpu,cuda}");
  // Before the tool's own function is set, which stays where no problem is named.
  command->parse_complete_callback([&globals, arguments, words] {
    arguments->words = words->results();
    take_configuration(*arguments);
    if (!arguments->problems.empty() || !arguments->config.empty())
      globals.run = [&globals, arguments] { return list_problems(globals, *arguments); };
  });
}

}  // namespace tmaops::cli
