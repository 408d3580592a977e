// `tmaops bench --ncu NAME`: this very command as one launch under NVIDIA's profiler.
#pragma once

#include <string>

namespace tmaops::cli {

/// Ends this process: ncu takes its place, runs the command again with --single-run instead of --ncu, and writes
/// NAME.ncu-rep. Throws Error output_exists unless `force`, and cannot_read where there is no ncu.
[[noreturn]] void run_under_ncu(const std::string& name, bool force);

}  // namespace tmaops::cli
