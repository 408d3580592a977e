// `tmaops list`: operators and variants; for a problem, which variant would run and why the others refuse.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/workload.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/run_options.hpp"
#include "cli/table.hpp"
#include "core/spelling.hpp"
#include "tmaops/error.hpp"
#include "tmaops/registry.hpp"

namespace tmaops::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ListOptions {
  std::vector<std::string> operators;
  std::vector<std::string> problems;
  std::string config;
  std::string device;
};

Json to_json(const VariantInfo& variant) {
  Json json{{"name", variant.name},
            {"device", variant.device == DeviceType::cuda ? "cuda" : "cpu"},
            {"arch", variant.arch},
            {"description", variant.description}};
  json["version"] = variant.version > 0 ? Json(variant.version) : Json(nullptr);
  json["built"] = variant.built;
  json["missing"] = variant.built ? Json(nullptr) : Json(variant.missing);
  return json;
}

std::string device_name(const VariantInfo& variant) {
  if (variant.device == DeviceType::cpu) return "cpu";
  return "cuda " + std::string(variant.arch);
}

int list_operators(const Globals& globals, const ListOptions& options) {
  std::vector<std::string_view> names = operators();
  for (const std::string& name : options.operators) variants(name);  // throws for an unknown one
  if (!options.operators.empty()) names.assign(options.operators.begin(), options.operators.end());
  Json json = Json::array();
  std::string text;
  const bool color = use_color(globals, Stream::data);
  for (const std::string_view name : names) {
    Table table({{"  variant"}, {"device"}, {"version", Align::right}, {"what it is"}});
    Json entry{{"operator", name}, {"variants", Json::array()}};
    for (const VariantInfo& variant : variants(name)) {
      entry["variants"].push_back(to_json(variant));
      table.add(
          {{"  " + std::string(variant.name), variant.built ? Style::plain : Style::faint},
           {device_name(variant)},
           {variant.version > 0 ? std::to_string(variant.version) : ""},
           {std::string(variant.description) + (variant.built ? "" : " [" + std::string(variant.missing) + "]")}});
    }
    json.push_back(std::move(entry));
    text += (text.empty() ? "" : "\n") + styled(name, Style::bold, color) + "\n" + table.text(color);
  }
  print_data(globals.json ? json.dump(2) + "\n" : text);
  return 0;
}

int list_problems(const Globals& globals, const ListOptions& options) {
  const io::RunConfig config = read_problems({options.config, options.problems, options.operators, options.device});
  Json json = Json::array();
  std::string text;
  const bool color = use_color(globals, Stream::data);
  for (const Settings& problem : config.problems) {
    const Device device = resolve_device(config.device, problem);
    const auto workload = bench::make_workload(problem, device);
    std::string chosen;
    try {
      chosen = workload->selected();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::variant_refuses) throw;  // every variant refuses: the table says why
    }
    const bench::CaseInfo& info = workload->info();
    Json entry{{"operator", info.op}, {"case", info.name}, {"dtype", info.dtype}, {"device", to_string(device)}};
    entry["selected"] = chosen.empty() ? Json(nullptr) : Json(chosen);
    entry["variants"] = Json::array();
    Table table({{"  variant"}, {"device"}, {"takes it"}, {"why"}});
    for (const bench::VariantChoice& variant : workload->variants()) {
      const bool is_chosen = variant.info.name == chosen;
      Json one = to_json(variant.info);
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
            " on " + to_string(device) + "\n" + table.text(color);
  }
  print_data(globals.json ? json.dump(2) + "\n" : text);
  return 0;
}

}  // namespace

void add_list_command(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* command = app.add_subcommand("list", "List operators and variants; with -p, which one would run and why");
  command->add_option("OPERATOR", options->operators, "Only these operators");
  command->add_option("-p,--problem", options->problems, "A problem: 'gemm: {mode: RC, size: 256}' (may be repeated)")
      ->allow_extra_args(false);
  command->add_option("--config", options->config, "The problems of a configuration");
  command->add_option("--device", options->device, "auto, cpu or cuda");
  command->callback([&globals, options] {
    globals.run = [&globals, options] {
      const bool problems = !options->problems.empty() || !options->config.empty();
      return problems ? list_problems(globals, *options) : list_operators(globals, *options);
    };
  });
}

}  // namespace tmaops::cli
