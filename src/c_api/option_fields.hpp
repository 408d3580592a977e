// From an option of a C struct to the field of the same name in the C++ options, for every line of options.h.
#pragma once

#include "c_api/arguments.hpp"

// Inside a function that has `read`, the C struct `options` and the C++ struct `made`.
#define TMAOPS_READ(kind, name, torch, ...) TMAOPS_READ_##kind(name)
#define TMAOPS_READ_f32(name) made.name = options.name;
#define TMAOPS_READ_f64(name) made.name = options.name;
#define TMAOPS_READ_i32(name) made.name = options.name;
#define TMAOPS_READ_flag(name) made.name = options.name != 0;
#define TMAOPS_READ_word(name) made.name = read.enumerator<decltype(made.name)>(#name, options.name);
#define TMAOPS_READ_text(name) made.name = text(options.name);
#define TMAOPS_READ_tensor(name) made.name = read.optional_tensor(#name, options.name);
#define TMAOPS_READ_time(name) made.name = read.time(#name, options.name);
#define TMAOPS_READ_allocator(name) made.name = Arguments::allocator(options.name);
// The operator reads its lists, whose length is another option or that of the levels.
#define TMAOPS_READ_i64_list(name)
#define TMAOPS_READ_i32_list(name)
#define TMAOPS_READ_group_list(name)
#define TMAOPS_READ_count(name)
