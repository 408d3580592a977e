// What the library has: its version, operators, variants and element types; and the threads of calls on the host.
#include <cstddef>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "c_api/plan.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "tmaops/registry.hpp"
#include "tmaops/threads.hpp"
#include "tmaops/version.hpp"

namespace tmaops::c_api {
namespace {

/// The texts of a VariantInfo are literals of variants.def, which end with a zero.
std::vector<tmaops_variant> variants_of(std::string_view op) {
  std::vector<tmaops_variant> list;
  for (const VariantInfo& variant : variants(op))
    if (!variant.study)  // those are in the wheel's library for its tool
      list.push_back({.name = variant.name.data(),
                      .description = variant.description.data(),
                      .arch = variant.arch.data(),
                      .missing = variant.missing.data(),
                      .device_type = variant.device == DeviceType::cuda ? tmaops_device_cuda : tmaops_device_cpu,
                      .version = variant.version});
  return list;
}

/// Made once, and never freed.
const std::map<std::string_view, std::vector<tmaops_variant>>& listing() {
  static const auto* const all = [] {
    std::map<std::string_view, std::vector<tmaops_variant>> made;
    for (const std::string_view op : operators())
      if (auto list = variants_of(op); !list.empty()) made.emplace(op, std::move(list));
    return new std::map<std::string_view, std::vector<tmaops_variant>>(std::move(made));
  }();
  return *all;
}

[[noreturn]] void refuse(std::string_view op) {
  const auto names = std::views::keys(listing());
  const std::vector<std::string_view> known(names.begin(), names.end());
  fail(ErrorCode::unknown_variant, "operator", "'" + std::string(op) + "'", "one of " + joined(known),
       did_you_mean(op, known));
}

/// What an option of this name may be, then null; null where it is not one of several words.
const char* const* words_of(std::string_view kind, std::string_view option) {
  if (kind != "word") return nullptr;
#define TMAOPS_WORDS(kind)                                                                   \
  static constexpr const char* kWords_##kind[] = {TMAOPS_WORDS_##kind(TMAOPS_TEXT) nullptr}; \
  if (option == #kind) return kWords_##kind;
  TMAOPS_WORDS(activation)
  TMAOPS_WORDS(bias_axis)
  TMAOPS_WORDS(sampling)
  TMAOPS_WORDS(interpolation)
  TMAOPS_WORDS(outside)
  TMAOPS_WORDS(duplicates)
  return nullptr;
}

template <class Field>
double number(const Field& field) {
  if constexpr (std::is_arithmetic_v<Field>) return static_cast<double>(field);
  return 0;
}

#define TMAOPS_TOLD(kind, name, torch, ...)                \
  {#name,                                                  \
   #kind,                                                  \
   #torch,                                                 \
   words_of(#kind, #name),                                 \
   offsetof(std::remove_const_t<decltype(initial)>, name), \
   number(initial.name)},

#define TMAOPS_OPTIONS_OF(name, NAME)                                              \
  if (op == #name) {                                                               \
    static constexpr tmaops_##name##_options initial = TMAOPS_##NAME##_OPTIONS;    \
    static const tmaops_option all[] = {TMAOPS_##NAME##_OPTION_LIST(TMAOPS_TOLD)}; \
    return all;                                                                    \
  }

/// The options of an operator, made once.
std::span<const tmaops_option> options_of(std::string_view op) {
  TMAOPS_OPTIONS_OF(gemm, GEMM)
  TMAOPS_OPTIONS_OF(ms_deform_attn, MS_DEFORM_ATTN)
  TMAOPS_OPTIONS_OF(resample, RESAMPLE)
  TMAOPS_OPTIONS_OF(recording, RECORDING)
  return {};
}

/// The entry of that index; null behind the last one.
template <class List>
auto entry(const List& list, std::int64_t index) -> decltype(&*list.begin()) {
  if (index < 0 || index >= static_cast<std::int64_t>(list.size())) return nullptr;
  return &*std::next(list.begin(), index);
}

}  // namespace
}  // namespace tmaops::c_api

using namespace tmaops::c_api;  // NOLINT(google-build-using-namespace): this file is a part of it

const char* tmaops_version() { return tmaops::version().data(); }
const char* tmaops_revision() { return tmaops::revision().data(); }

const char* tmaops_operator_at(int64_t index) {
  const char* name = nullptr;
  status_of("operators", [&] {
    if (const auto* found = entry(listing(), index)) name = found->first.data();
  });
  return name;
}

const tmaops_variant* tmaops_variant_at(const char* op, int64_t index) {
  const tmaops_variant* variant = nullptr;
  status_of("variants", [&] {
    const auto found = listing().find(text(op));
    if (found == listing().end()) refuse(text(op));
    variant = entry(found->second, index);
  });
  return variant;
}

const tmaops_option* tmaops_option_at(const char* op, int64_t index) { return entry(options_of(text(op)), index); }

const tmaops_named_dtype* tmaops_dtype_at(int64_t index) { return entry(named_dtypes(), index); }

int tmaops_num_threads(int* count) {
  return status_of_call("tmaops_num_threads", [&](const Arguments& arguments) {
    arguments.place("count", count);
    *count = tmaops::num_threads();
  });
}

int tmaops_set_num_threads(int count) {
  return status_of("tmaops_set_num_threads", [&] { tmaops::set_num_threads(count); });
}

int tmaops_set_parallel_for(tmaops_parallel_for run, void* context) {
  return status_of("tmaops_set_parallel_for", [&] { tmaops::set_parallel_for(run, context); });
}
