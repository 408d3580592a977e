#include "io/npy_header.hpp"

#include <charconv>
#include <limits>
#include <utility>

#include "io/file_error.hpp"
#include "tmaops/error.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops::io {
namespace {

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
    throw Error(ErrorCode::bad_npy_header,
                {.where = std::string(where_),
                 .got = std::move(got) + " in " + display_text(whole_.substr(0, 200)),
                 .needed = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), } or the like"});
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
        throw Error(ErrorCode::file_too_large, {.where = std::string(where_),
                                                .got = "an extent above 2^63 in " + display_text(whole_.substr(0, 200)),
                                                .needed = "a shape whose elements can be counted"});
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
      throw Error(ErrorCode::pickle_refused, {.where = std::string(where_),
                                              .got = "element type '" + display_text(text) + "'",
                                              .needed = "numbers, booleans or text"});
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
    throw Error(ErrorCode::unsupported_file_dtype,
                {.where = std::string(where_),
                 .got = std::move(got),
                 .needed = "<f2 <f4 <f8 |i1 <i2 <i4 <i8 |u1 <u2 <u4 <u8 |b1 <U# |S# or <M8[s|ms|us|ns]",
                 .mend = std::move(mend)});
  }

  std::string_view rest_;
  std::string_view where_;
  std::string_view whole_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, std::string_view where) {
  NpyHeader header = HeaderParser(text, where).parse();
  std::int64_t bytes = static_cast<std::int64_t>(header.type.bytes);
  for (const std::int64_t extent : header.shape) {
    // Zeros are left out of the product, because the strides of the other dimensions must fit as well.
    if (extent != 0 && bytes != 0 && extent > std::numeric_limits<std::int64_t>::max() / bytes)
      throw Error(ErrorCode::file_too_large, {.where = std::string(where),
                                              .got = "shape of more than 2^63 bytes",
                                              .needed = "a shape whose bytes can be counted"});
    if (extent != 0) bytes *= extent;
  }
  if (header.type.bytes == 0) {  // any number of elements without bytes would fit the file
    throw Error(ErrorCode::unsupported_file_dtype, {.where = std::string(where),
                                                    .got = "'" + header.type.descr + "', elements of no bytes",
                                                    .needed = "text of at least one character"});
  }
  return header;
}

}  // namespace tmaops::io
