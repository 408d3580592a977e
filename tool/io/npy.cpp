#include "io/npy.hpp"

#include <charconv>
#include <cstring>
#include <limits>
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

class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view where) : rest_(text), where_(where), whole_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      bool* seen = key == "descr" ? &has_descr : key == "fortran_order" ? &has_order : &has_shape;
      if (seen == &has_shape && key != "shape") fail("the key '" + display_text(key) + "'");
      if (std::exchange(*seen, true)) fail("the key '" + key + "' twice");
      if (seen == &has_descr) {
        header.type = descr();
      } else if (seen == &has_order) {
        header.fortran_order = boolean();
      } else {
        header.shape = shape();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!rest_.empty()) fail("text after the dictionary");
    if (!has_descr || !has_order || !has_shape)
      fail(std::string("no key '") + (!has_descr ? "descr" : !has_order ? "fortran_order" : "shape") + "'");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string got) const {
    tmaops::fail(ErrorCode::bad_npy_header, where_, std::move(got) + " in " + display_text(whole_.substr(0, 200)),
                 "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), } or the like");
  }
  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t' || rest_[0] == '\r'))
      rest_.remove_prefix(1);
  }
  bool accept(char c) {
    skip_space();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("no '") + c + "' at byte " + std::to_string(whole_.size() - rest_.size()));
  }
  std::string string() {
    skip_space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) fail("a key or value that is no string");
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) fail("a string without an end");
    std::string text(rest_.substr(1, end - 1));
    if (text.find('\\') != std::string::npos) fail("a string with a backslash");
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail("a fortran_order that is neither True nor False");
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (error == std::errc::result_out_of_range)
        tmaops::fail(ErrorCode::file_too_large, where_,
                     "an extent above 2^63 in " + display_text(whole_.substr(0, 200)),
                     "a shape whose elements can be counted");
      if (error != std::errc() || extent < 0) fail("a shape that is not a tuple of sizes");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      accept('L');  // Python 2 wrote an L behind long integers
      extents.push_back(extent);
      if (extents.size() > kMaxRank) fail("more than 8 dimensions");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }
  ElementType descr() {
    skip_space();
    if (!rest_.empty() && rest_[0] == '[') unsupported("a structured type");
    const std::string text = string();
    if (text.find('O') != std::string::npos)
      tmaops::fail(ErrorCode::pickle_refused, where_, "element type '" + display_text(text) + "'",
                   "numbers, booleans or text");
    if (const auto type = element_type(text)) return *type;
    if (!text.empty() && text[0] == '>') unsupported("'" + display_text(text) + "', which is big-endian");
    if (text.starts_with("<M8"))
      unsupported("'" + display_text(text) + "'", "Save times in a unit tmaops reads: x.astype('datetime64[ns]').");
    if (text.starts_with("<m8"))
      unsupported("'" + display_text(text) + "', which is timedelta64",
                  "Save it as integers: x.astype('timedelta64[ns]').astype('int64').");
    unsupported("'" + display_text(text) + "'");
  }
  [[noreturn]] void unsupported(std::string got, std::string mend = {}) const {
    tmaops::fail(ErrorCode::unsupported_file_dtype, where_, got,
                 "<f2 <f4 <f8 |i1 <i2 <i4 <i8 |u1 <u2 <u4 <u8 |b1 <U# |S# or <M8[s|ms|us|ns]", mend);
  }

  std::string_view rest_;
  std::string_view where_;
  std::string_view whole_;
};

/// Parses {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), } in any order of keys. `where` names the file.
/// Throws Error bad_npy_header, pickle_refused, unsupported_file_dtype, file_too_large (elements or bytes overflow).
NpyHeader parse_npy_header(std::string_view text, std::string_view where) {
  NpyHeader header = HeaderParser(text, where).parse();
  std::int64_t bytes = static_cast<std::int64_t>(header.type.bytes);
  for (const std::int64_t extent : header.shape) {
    // Zeros are left out of the product, because the strides of the other dimensions must fit as well.
    if (extent != 0 && bytes != 0 && extent > std::numeric_limits<std::int64_t>::max() / bytes)
      fail(ErrorCode::file_too_large, where, "shape of more than 2^63 bytes", "a shape whose bytes can be counted");
    if (extent != 0) bytes *= extent;
  }
  if (header.type.bytes == 0) {  // any number of elements without bytes would fit the file
    fail(ErrorCode::unsupported_file_dtype, where, "'" + header.type.descr + "', elements of no bytes",
         "text of at least one character");
  }
  return header;
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
