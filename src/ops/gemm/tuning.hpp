// What was measured to be fastest on a GPU, case by case: the table that `tmaops bench --tune` writes and select()
// reads.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

/// One line of the table. It serves exactly its case: another GPU, size, mode or type is another case.
struct TunedChoice {
  std::string gpu;          // "NVIDIA H200"
  std::string product;      // "RC 64x4096x7168"
  std::string types;        // "f16", or "f16->f32" where D differs
  std::string choice;       // "wgmma_deep_stages/64x64k2"
  double microseconds = 0;  // of a launch, when it was chosen
};

class TuningTable {
 public:
  /// Throws Error bad_tuning with the line for anything that is not a table. A choice that this build does not have is
  /// kept, and select() does not use it.
  static TuningTable parse(std::string_view text, const std::string& source);
  /// Throws Error cannot_read and bad_tuning.
  static TuningTable read(const std::string& path);

  /// Adds a choice, or replaces that of the same GPU and case.
  void set(TunedChoice choice);
  /// Null when the case was not measured.
  const TunedChoice* find(std::string_view gpu, std::string_view product, std::string_view types) const;
  const std::vector<TunedChoice>& choices() const { return choices_; }
  /// The file's text; parse() reads it.
  std::string text() const;

 private:
  std::vector<TunedChoice> choices_;
};

/// How the table names a problem, in the form in which D is row-major. The epilogue makes no difference, nor do
/// strides, unless they keep the variant from running.
std::string tuned_product(const Problem& row_major);
std::string tuned_types(const Problem& row_major);

/// The file that is used: `option` if not empty, else the environment variable TMAOPS_GEMM_TUNING, else
/// gemm_tuning.yaml in the directory tmaops of $XDG_CACHE_HOME or ~/.cache. Empty: none, which "off" in either place
/// also means.
std::string tuning_path(const std::string& option);

/// The table of that file, read once per process and path; null when there is none: a missing file is an error only
/// where it was named. Throws Error cannot_read and bad_tuning.
std::shared_ptr<const TuningTable> tuning_table(const std::string& option);

}  // namespace tmaops::ops::gemm
