// What identifies the code of a variant in a result file (cmake/code_digests.py).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tmaops/tensor.hpp"

namespace tmaops::bench {

struct CodeDigest {
  std::string digest;
  std::string compiler;  // "nvcc 13.0.88", "GNU 12.2.0"
};

/// Of the machine code that this build has of a variant for that GPU, or of its sources on the CPU. `variant` may name
/// a configuration, too. Nothing for other names and where the build could not read the machine code.
std::optional<CodeDigest> code_digest(std::string_view op, std::string_view variant, Device device);

}  // namespace tmaops::bench
