// What limits the number of threads, apart from num_threads() so that it can be tested.
#pragma once

#include <string>

namespace tmaops::detail {

/// How many processors the cgroups of a process allow: the least on the way up to the root, 0 for no limit.
/// `memberships` is a file like /proc/self/cgroup, `file_system` the place where the cgroup tree is mounted (v2 there,
/// v1 in its folder cpu).
double cgroup_quota(const std::string& memberships, const std::string& file_system);

/// Microseconds of work on one thread below which threads_for() says 1. Tests set it to 0, so that small problems run
/// in several threads too.
void set_short_call(double microseconds);
inline constexpr double kShortCall = 150;

}  // namespace tmaops::detail
