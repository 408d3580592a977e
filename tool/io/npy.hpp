// The npy array format (numpy.lib.format), versions 1 to 3, without pickles.
#pragma once

#include <string>
#include <string_view>

#include "io/names.hpp"
#include "offers/input_file.hpp"

namespace tmaops::io {

/// Reads an npy file, whose bytes the array shares where it can. A Fortran-order array is converted to row-major.
/// `where` names the file in messages. `name` is that of the array, or of its file without ".npy": where it ends in
/// ".bf16", a <u2 array is bfloat16. Throws Error bad_format (empty, magic, version), bad_npy_header (over 10,000
/// bytes, not the dictionary of the format, more than 8 dimensions), pickle_refused, unsupported_file_dtype
/// (big-endian, complex, structured), file_too_large (header or data longer or shorter than the file, overflowing
/// shape), out_of_memory.
Array parse_npy(const Bytes& file, std::string_view where, std::string_view name);

/// The bytes before the data of an npy file, version 1.0, padded so that the data start at a multiple of 64.
std::string npy_header(const Array& array);

}  // namespace tmaops::io
