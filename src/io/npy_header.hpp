// The header of an npy file: a Python dictionary literal with three known keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/array.hpp"

namespace tmaops::io {

struct NpyHeader {
  ElementType type{};
  bool fortran_order = false;
  std::vector<std::int64_t> shape{};
};

/// Parses {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), } in any order of keys. `where` names the file.
/// Throws Error bad_npy_header, pickle_refused, unsupported_file_dtype, file_too_large (elements or bytes overflow).
NpyHeader parse_npy_header(std::string_view text, std::string_view where);

}  // namespace tmaops::io
