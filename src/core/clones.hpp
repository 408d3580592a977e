// One binary for several instruction sets: the loader picks the widest clone of a plain loop.
#pragma once

// x86-64-v3 is AVX2 with FMA, and v4 adds AVX-512: levels are chosen by features, processors' names by model number.
// Sanitizers get no clones: the functions that choose one run before the sanitizer is ready, and crash.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TMAOPS_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define TMAOPS_CLONES
#endif

// A function for AVX-512 alone, to be called where has_v4() says so.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TMAOPS_V4 __attribute__((target("arch=x86-64-v4")))
namespace tmaops {
inline bool has_v4() { return __builtin_cpu_supports("x86-64-v4"); }
}  // namespace tmaops
#endif
