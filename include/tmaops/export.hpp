// What a shared library of tmaops exports.
#pragma once

/// Marks what a shared library (BUILD_SHARED_LIBS=ON) exports. A static one exports nothing: in a library of the
/// caller's that it is linked into, tmaops stays inside.
#if defined(TMAOPS_SHARED)
#define TMAOPS_API __attribute__((visibility("default")))
#else
#define TMAOPS_API
#endif
