#include "io/npy.hpp"

#include <cstring>
#include <utility>

#include "io/file_error.hpp"
#include "io/npy_header.hpp"
#include "tmaops/error.hpp"

namespace tmaops::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kLongestHeader = 10'000;  // numpy's own max_header_size
constexpr std::size_t kDataAlignment = 64;

[[noreturn]] void fail(ErrorCode code, std::string_view where, std::string got, std::string needed) {
  throw Error(code, {.where = std::string(where), .got = std::move(got), .needed = std::move(needed)});
}

// Row-major copy of a column-major array.
std::shared_ptr<const std::byte[]> transposed(const std::byte* from, const Array& array, std::string_view where) {
  const std::size_t item = array.type.bytes;
  auto to = allocate(array.bytes(), where);
  std::vector<std::size_t> stride(array.shape.size());  // of the source, bytes
  std::size_t step = item;
  for (std::size_t i = 0; i < array.shape.size(); ++i) {
    stride[i] = step;
    step *= static_cast<std::size_t>(array.shape[i]);
  }
  std::vector<std::int64_t> index(array.shape.size(), 0);
  std::size_t at = 0;
  for (std::size_t out = 0; out < array.bytes(); out += item) {
    std::memcpy(to.get() + out, from + at, item);
    for (std::size_t i = index.size(); i-- > 0;) {
      at += stride[i];
      if (++index[i] < array.shape[i]) break;
      at -= stride[i] * static_cast<std::size_t>(array.shape[i]);
      index[i] = 0;
    }
  }
  return to;
}

}  // namespace

Array parse_npy(const Bytes& file, std::string_view where) {
  const std::string_view text = file.text();
  if (text.empty()) fail(ErrorCode::bad_format, where, "an empty file", "an npy array");
  if (!text.starts_with(kMagic.substr(0, text.size())))
    fail(ErrorCode::bad_format, where, "other first bytes than \\x93NUMPY", "an npy array");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(text[i])); };
  if (text.size() < 10) fail(ErrorCode::bad_format, where, "a file cut off in its first 10 bytes", "an npy array");
  const std::size_t version = byte(6);
  if (version < 1 || version > 3 || byte(7) != 0)
    fail(ErrorCode::bad_format, where, "npy version " + std::to_string(version) + "." + std::to_string(byte(7)),
         "version 1.0, 2.0 or 3.0");
  const std::size_t prefix = version == 1 ? 10 : 12;
  if (text.size() < prefix) fail(ErrorCode::bad_format, where, "a file cut off in its first 12 bytes", "an npy array");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kLongestHeader)
    fail(ErrorCode::bad_npy_header, where, "a header of " + std::to_string(length) + " bytes", "at most 10,000 bytes");
  if (length > text.size() - prefix)
    fail(ErrorCode::file_too_large, where,
         "a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(text.size()),
         "the whole header");
  NpyHeader header = parse_npy_header(text.substr(prefix, length), where);

  Array array{std::move(header.type), std::move(header.shape), {}};
  const std::size_t start = prefix + length;
  if (array.bytes() != text.size() - start)
    fail(ErrorCode::file_too_large, where,
         std::to_string(text.size() - start) + " bytes of data for the shape " + array.text(),
         std::to_string(array.bytes()) + " bytes");
  if (header.fortran_order && array.shape.size() > 1) {
    array.data = transposed(file.data.get() + start, array, where);
  } else {
    array.data = std::shared_ptr<const std::byte[]>(file.data, file.data.get() + start);
  }
  return array;
}

Array read_npy(const std::filesystem::path& path) {
  Array array = parse_npy(read_file(path), display(path));
  if (array.type.descr == "<u2" && path.stem().native().ends_with(kBfloat16Suffix))
    array.type = {ElementKind::real, "<u2", 2, true};
  return array;
}

std::string npy_header(const Array& array) {
  std::string shape;
  for (const std::int64_t extent : array.shape) shape += std::to_string(extent) + ", ";
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  if (array.shape.size() == 1) shape.pop_back();
  std::string dictionary = "{'descr': '" + array.type.descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const std::size_t unpadded = kMagic.size() + 4 + dictionary.size() + 1;
  dictionary.append((kDataAlignment - unpadded % kDataAlignment) % kDataAlignment, ' ');
  dictionary += '\n';
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff), static_cast<char>(dictionary.size() >> 8)};
  return header + dictionary;
}

}  // namespace tmaops::io
