// `tmaops list`: operators and variants. What measures adds `-p`: which variant would run and why the others refuse.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "offers/console.hpp"
#include "offers/table.hpp"
#include "offers/variant_text.hpp"
#include "tmaops/registry.hpp"

namespace tmaops::cli {
using Json = nlohmann::ordered_json;

namespace {

int list_operators(const Globals& globals, const std::vector<std::string>& wanted) {
  std::vector<std::string_view> names = operators();
  for (const std::string& name : wanted) variants(name);  // throws for an unknown one
  if (!wanted.empty()) names.assign(wanted.begin(), wanted.end());
  Json json = Json::array();
  std::string text;
  const bool color = use_color(globals, Stream::data);
  for (const std::string_view name : names) {
    Table table("  variant|device|>version||what it is");
    Json entry{{"operator", name}, {"variants", Json::array()}};
    for (const VariantInfo& variant : variants(name)) {
      entry["variants"].push_back(variant_json(variant));
      table.add(
          {{"  " + std::string(variant.name), variant.built ? Style::plain : Style::faint},
           {device_name(variant)},
           {variant.version > 0 ? std::to_string(variant.version) : ""},
           {variant.study ? "study" : ""},
           {std::string(variant.description) + (variant.built ? "" : " [" + std::string(variant.missing) + "]")}});
    }
    json.push_back(std::move(entry));
    text += (text.empty() ? "" : "\n") + styled(name, Style::bold, color) + "\n" +
            table.text(color, line_width(Stream::data));
  }
  print_data(globals.json ? json.dump(2) + "\n" : text);
  return 0;
}

}  // namespace

void add_list_command(CLI::App& app, Globals& globals) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("list", "List operators and variants");
  command->add_option("OPERATOR", *words, "Only these operators");
  set_run(*command, globals, [&globals, words] { return list_operators(globals, *words); });
}

}  // namespace tmaops::cli
