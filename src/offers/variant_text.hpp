// A variant as `tmaops list` shows it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tmaops/registry.hpp"

namespace tmaops::cli {

nlohmann::ordered_json variant_json(const VariantInfo& variant);
/// "cpu", "cuda sm90a".
std::string device_name(const VariantInfo& variant);

}  // namespace tmaops::cli
