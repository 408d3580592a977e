// What the commands of wings show as those of the tool do.
#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>

#include "offers/commands.hpp"
#include "offers/variant_text.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {

using Json = nlohmann::ordered_json;

Json variant_json(const VariantInfo& variant) {
  Json json{{"name", variant.name},
            {"device", variant.device == DeviceType::cuda ? "cuda" : "cpu"},
            {"arch", variant.arch},
            {"description", variant.description}};
  json["version"] = variant.version > 0 ? Json(variant.version) : Json(nullptr);
  json["study"] = variant.study;
  json["built"] = variant.built;
  json["missing"] = variant.built ? Json(nullptr) : Json(variant.missing);
  return json;
}

std::string device_name(const VariantInfo& variant) {
  if (variant.device == DeviceType::cpu) return "cpu";
  return "cuda " + std::string(variant.arch);
}

Finding finding(const std::string& name, const std::function<Finding()>& look) {
  try {
    return look();
  } catch (const Error& error) {
    const bool absent = error.exit_code() == 4;
    return {name, absent ? Finding::State::missing : Finding::State::problem,
            fmt::format("{} {}{}", error.number(), error_page(error.code()).title,
                        error.details().got.empty() ? "" : ": " + error.details().got),
            absent ? "running on a GPU" : "",
            error.details().mend.empty() ? std::string(error_page(error.code()).mend) : error.details().mend};
  } catch (const std::exception& error) {
    return {name, Finding::State::problem, error.what()};
  }
}

}  // namespace tmaops::cli
