// Small problems run in several threads too, which is what these tests are about.
#include "core/thread_count.hpp"

namespace {
[[maybe_unused]] const bool done = (tmaops::detail::set_short_call(0), true);
}
