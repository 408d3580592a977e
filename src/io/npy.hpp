// The npy array format (numpy.lib.format), versions 1 to 3, without pickles.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "io/array.hpp"
#include "io/input_file.hpp"

namespace tmaops::io {

/// Reads an npy file. A Fortran-order array is converted to row-major. A name that ends in ".bf16.npy" makes a <u2
/// array bfloat16. Throws Error cannot_read, bad_format (empty, magic, version), bad_npy_header (over 10,000 bytes, not
/// the dictionary of the format, more than 8 dimensions), pickle_refused, unsupported_file_dtype (big-endian, complex,
/// structured), file_too_large (header or data longer or shorter than the file, overflowing shape), out_of_memory.
Array read_npy(const std::filesystem::path& path);
/// The same from memory. `where` names the file in messages. The array shares the bytes where it can.
Array parse_npy(const Bytes& file, std::string_view where);

/// The bytes before the data of an npy file, version 1.0, padded so that the data start at a multiple of 64.
std::string npy_header(const Array& array);

}  // namespace tmaops::io
