#include "io/npy.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kLongestHeader = 10'000;  // numpy's own max_header_size
constexpr std::size_t kDataAlignment = 64;

/// The header of an npy file: a Python dictionary literal with three known keys.
struct NpyHeader {
  ElementType type{};
  bool fortran_order = false;
  std::vector<std::int64_t> shape{};
};

/// The header, which is a literal of Python, as JSON: brackets for a tuple, true for True, and no comma at an end.
std::string as_json(std::string_view text) {
  std::string json;
  std::string comma;  // one that is kept back until something follows it
  char quote = 0;     // of the string that is open
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quote != 0) {
      json += c == quote ? '"' : c;
      if (c == '"' && c != quote) return {};
      if (c == quote) quote = 0;
      continue;
    }
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') continue;
    if (c == 'L' && i > 0 && text[i - 1] >= '0' && text[i - 1] <= '9') continue;  // Python 2's long integers
    if (c == '(' || c == ')') c = c == '(' ? '[' : ']';
    if (c != ']' && c != '}') json += comma;
    comma = c == ',' ? "," : "";
    if (c == ',') continue;
    if (c == '\'' || c == '"') quote = std::exchange(c, '"');
    json += c == 'T' ? 't' : c == 'F' ? 'f' : c;
  }
  return json + comma;
}

ElementType parse_descr(const nlohmann::json& descr, std::string_view where) {
  const auto unsupported = [&](std::string got, std::string mend = {}) {
    fail(ErrorCode::unsupported_file_dtype, where, got,
         "<f2 <f4 <f8 |i1 <i2 <i4 <i8 |u1 <u2 <u4 <u8 |b1 <U# |S# or <M8[s|ms|us|ns]", mend);
  };
  if (!descr.is_string()) unsupported("a structured type");
  const std::string text = descr;
  const std::string shown = "'" + display_text(text) + "'";
  if (text.find('O') != std::string::npos)
    fail(ErrorCode::pickle_refused, where, "element type " + shown, "numbers, booleans or text");
  const auto type = element_type(text);
  if (type && type->bytes == 0)  // any number of elements without bytes would fit the file
    unsupported(shown + ", elements of no bytes");
  if (!type && text.starts_with('>')) unsupported(shown + ", which is big-endian");
  if (!type && text.starts_with("<M8"))
    unsupported(shown, "Save times in a unit tmaops reads: x.astype('datetime64[ns]').");
  if (!type && text.starts_with("<m8"))
    unsupported(shown + ", which is timedelta64", "Save it as integers: x.astype('timedelta64[ns]').astype('int64').");
  if (!type) unsupported(shown);
  return *type;
}

/// Parses {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), } in any order of keys. `where` names the file.
/// Throws Error bad_npy_header, pickle_refused, unsupported_file_dtype, file_too_large (elements or bytes overflow).
NpyHeader parse_npy_header(std::string_view text, std::string_view where) {
  int keys = 0;
  const auto count = [&](int, nlohmann::json::parse_event_t event, const nlohmann::json&) {
    keys += event == nlohmann::json::parse_event_t::key ? 1 : 0;
    return true;
  };
  const auto header = nlohmann::json::parse(as_json(text), count, false);
  const auto is = [&](const char* key, bool (nlohmann::json::*of_type)() const noexcept) {
    return header.contains(key) && (header[key].*of_type)();
  };
  const bool known = header.is_object() && header.size() == 3 && keys == 3 && header.contains("descr") &&
                     (header["descr"].is_string() || header["descr"].is_array()) &&
                     is("fortran_order", &nlohmann::json::is_boolean) && is("shape", &nlohmann::json::is_array) &&
                     header["shape"].size() <= kMaxRank && std::ranges::all_of(header["shape"], [](const auto& extent) {
                       return extent.is_number_float() ? extent > 1e18 : extent.is_number() && extent >= 0;
                     });
  const std::string shown = display_text(text.substr(0, 200));
  if (!known)
    fail(ErrorCode::bad_npy_header, where, shown.empty() ? "an empty header" : shown,
         "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), } or the like, with at most 8 dimensions");
  NpyHeader made{.type = parse_descr(header["descr"], where), .fortran_order = header["fortran_order"]};
  auto bytes = static_cast<std::int64_t>(made.type.bytes);
  for (const auto& extent : header["shape"]) {
    // Zeros are left out of the product, because the strides of the other dimensions must fit as well.
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (!extent.is_number_integer() || extent > kMost || (extent != 0 && extent > kMost / bytes))
      fail(ErrorCode::file_too_large, where, "a shape of more than 2^63 bytes in " + shown,
           "a shape whose bytes can be counted");
    made.shape.push_back(extent);
    if (extent != 0) bytes *= made.shape.back();
  }
  return made;
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

Array parse_npy(const Bytes& file, std::string_view where, std::string_view name) {
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
  if (array.type.descr == "<u2" && name.ends_with(kBfloat16Suffix)) array.type = {ElementKind::real, "<u2", 2, true};
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
