#include "bench/run/code_digest.hpp"

#include "core/device_info.hpp"

namespace tmaops::bench {
namespace {

struct CodeDigestRow {
  std::string_view op, variant;
  int arch;  // compute capability, 90 for 9.0; 0 on the CPU
  std::string_view digest;
};

#include "code_digests.inc"

}  // namespace

std::optional<CodeDigest> code_digest(std::string_view op, std::string_view variant, Device device) {
  const bool on_gpu = device.type == DeviceType::cuda;
  const int capability = on_gpu ? device_info(device).compute_capability : 0;
  const std::string_view name = variant.substr(0, variant.find('/'));
  const CodeDigestRow* best = nullptr;  // machine code runs on later minor versions
  for (const CodeDigestRow& row : kCodeDigests)
    if (row.op == op && row.variant == name && row.arch <= capability && row.arch / 10 == capability / 10 &&
        (best == nullptr || row.arch > best->arch))
      best = &row;
  if (best == nullptr) return std::nullopt;
  return CodeDigest{std::string(best->digest), on_gpu ? kCudaCompiler : kCpuCompiler};
}

}  // namespace tmaops::bench
