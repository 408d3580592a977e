// The variant registry: an operator's variants.def becomes a table of functions, best first, reference last.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device_info.hpp"
#include "core/work.hpp"
#include "tmaops/error.hpp"
#include "tmaops/registry.hpp"

namespace tmaops {

/// A variant's answer: yes, or no with the reason in words.
struct Support {
  bool ok = true;
  std::string reason{};
  static Support yes() { return {}; }
  static Support no(std::string why) { return {false, std::move(why)}; }
  explicit operator bool() const { return ok; }
};

/// What a variants.def line says after the description.
struct VariantAttributes {
  int version = 0;               // version(2): N of the ladder
  int registers = 0;             // regs(168): most registers per thread the machine code may use
  int spills = 0;                // spills(64): most bytes per thread that the machine code may keep in local memory
  int shared_memory = 0;         // smem(196608): most shared memory per block in bytes
  int least_shared_memory = -1;  // smem_least(18560): what every problem takes; the variant checks each one's need
  std::string_view sass{};       // sass("UTMALDG,HGMMA"): instructions that must be in the machine code
  std::string_view needs{};      // needs("onednn"): optional library without which the variant is left out
  int kernels = 1;               // kernels(3): how many a call runs one after the other
  bool study = false;    // of study/: there to be compared, never chosen by itself, not in the installed library
  bool half = false;     // half: rounds to f16 throughout, which its results show
  bool configs = false;  // configs: the variant exports configs()
};

/// The words of a variants.def line. Each sets what it says.
namespace variant_attributes {
constexpr auto version(int n) {
  return [n](VariantAttributes& to) { to.version = n; };
}
constexpr auto regs(int n) {
  return [n](VariantAttributes& to) { to.registers = n; };
}
constexpr auto spills(int n) {
  return [n](VariantAttributes& to) { to.spills = n; };
}
constexpr auto smem(int n) {
  return [n](VariantAttributes& to) { to.shared_memory = n; };
}
constexpr auto smem_least(int n) {
  return [n](VariantAttributes& to) { to.least_shared_memory = n; };
}
constexpr auto kernels(int n) {
  return [n](VariantAttributes& to) { to.kernels = n; };
}
constexpr auto sass(std::string_view text) {
  return [text](VariantAttributes& to) { to.sass = text; };
}
constexpr auto needs(std::string_view text) {
  return [text](VariantAttributes& to) { to.needs = text; };
}
inline constexpr auto study = [](VariantAttributes& to) { to.study = true; };
inline constexpr auto half = [](VariantAttributes& to) { to.half = true; };
inline constexpr auto configs = [](VariantAttributes& to) { to.configs = true; };

template <class... Word>
constexpr VariantAttributes collect(const Word&... word) {
  VariantAttributes all;
  (word(all), ...);
  return all;
}
}  // namespace variant_attributes

/// The configuration of an operator whose variants have a single way to run.
struct OneWay {
  static std::string text() { return {}; }
  friend bool operator==(OneWay, OneWay) = default;
};

/// One line of a variants.def. The functions are null for a variant left out of this build.
/// Config is a plain struct with text(): how the variant is set up, "64x128, 3 stages".
template <class Problem, class Arguments, class Config>
struct Variant {
  std::string_view op;
  std::string_view name;
  DeviceType device;
  std::string_view arch;
  std::string_view description;
  VariantAttributes attributes;
  std::string_view missing;  // why it was left out; empty when it is built
  Support (*supports)(const Problem&, const DeviceInfo&);
  Work (*plan)(const Problem&, const Arguments&, const Config&);
  /// The ways to run a problem that it supports. Null: there is one, Config().
  std::vector<Config> (*configs)(const Problem&, const DeviceInfo&);

  bool built() const { return plan != nullptr; }
  VariantInfo info() const {
    return {op, name, device, arch, description, attributes.version, built(), missing, attributes.study};
  }
};

template <class Problem, class Arguments, class Config>
using VariantTable = std::span<const Variant<Problem, Arguments, Config>>;

/// No, in words, where a block cannot have so many bytes of shared memory on a device.
Support fits_shared_memory(std::int64_t bytes, const DeviceInfo& device);

/// The compute capabilities that this build's kernels were compiled for: "8.6, 9.0".
std::string compiled_for();

/// Whether a GPU can run the kernels of a line: its compute capability, for which this build must hold them, and the
/// shared memory of a block.
Support fits_device(std::string_view arch, const VariantAttributes& attributes, const DeviceInfo& device);

/// Whether a variant takes a problem on a device: built (for a pretended device, its supports() is enough), right
/// device, what the line asks of it, supports().
template <class Problem, class Arguments, class Config>
Support try_variant(const Variant<Problem, Arguments, Config>& variant, const Problem& problem,
                    const DeviceInfo& device) {
  const bool pretended = variant.supports != nullptr && PretendedDevice::exists();
  if (!variant.built() && !pretended) return Support::no(std::string(variant.missing));
  if (variant.device != device.device.type)
    return Support::no(variant.device == DeviceType::cuda ? "runs on a GPU, the tensors are on the CPU"
                                                          : "runs on the CPU, the tensors are on a GPU");
  if (variant.device == DeviceType::cuda)
    if (Support fit = fits_device(variant.arch, variant.attributes, device); !fit) return fit;
  return variant.supports(problem, device);
}

/// The variant of that name, which a caller asked for. Throws Error unknown_variant, or variant_refuses with
/// the reason.
template <class Problem, class Arguments, class Config>
const Variant<Problem, Arguments, Config>& named_variant(std::span<const Variant<Problem, Arguments, Config>> table,
                                                         std::string_view name, const Problem& problem,
                                                         const DeviceInfo& device) {
  std::string names;
  for (const auto& variant : table) {
    if (variant.name == name) {
      if (Support support = try_variant(variant, problem, device); !support)
        throw Error(ErrorCode::variant_refuses, {.where = std::string(variant.op) + ": variant " + std::string(name),
                                                 .got = problem.text(),
                                                 .needed = support.reason});
      return variant;
    }
    names += (names.empty() ? "" : ", ") + std::string(variant.name);
  }
  throw Error(ErrorCode::unknown_variant, {.where = table.empty() ? "" : std::string(table.front().op),
                                           .got = "'" + std::string(name) + "'",
                                           .needed = "one of " + names});
}

/// The first variant of the table that takes the problem, studies left out. Throws Error variant_refuses with every
/// reason.
template <class Problem, class Arguments, class Config>
const Variant<Problem, Arguments, Config>& first_variant(std::span<const Variant<Problem, Arguments, Config>> table,
                                                         const Problem& problem, const DeviceInfo& device) {
  std::string reasons;
  for (const auto& variant : table) {
    const Support support = variant.attributes.study ? Support::no("a study, which runs where it is named")
                                                     : try_variant(variant, problem, device);
    if (support) return variant;
    reasons += "\n          " + std::string(variant.name) + ": " + support.reason;
  }
  throw Error(ErrorCode::variant_refuses, {.where = table.empty() ? "" : std::string(table.front().op),
                                           .got = problem.text(),
                                           .needed = "a variant that takes it; each refuses:" + reasons});
}

}  // namespace tmaops
