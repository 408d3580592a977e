#include "io/array.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "io/input_file.hpp"
#include "tmaops/dtype.hpp"

namespace tmaops::io {
namespace {

static_assert(std::endian::native == std::endian::little, "files and memory have the same byte order");

constexpr std::size_t kLongestText = 1 << 20;  // characters of one text element

template <class T>
T load(const Array& array, std::int64_t index) {
  T value;
  std::memcpy(&value, array.data.get() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(T));
}

template <class T>
Array from_numbers(std::span<const T> values, std::vector<std::int64_t> shape, std::string_view descr) {
  auto data = allocate(values.size_bytes(), "an array");
  if (!values.empty()) std::memcpy(data.get(), values.data(), values.size_bytes());
  return {*element_type(descr), std::move(shape), std::move(data)};
}

// Decodes one code point at the start of text and takes it away; U+FFFD for a byte that starts none.
char32_t take_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  char32_t code = length == 1 ? lead : lead & (0x7fU >> length);
  bool good = length != 0 && lead <= 0xf4 && text.size() >= length;
  for (std::size_t i = 1; good && i < length; ++i) {
    good = (byte(i) & 0xc0) == 0x80;
    code = (code << 6) | (byte(i) & 0x3fU);
  }
  static constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  good = good && code >= kSmallest[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  text.remove_prefix(good ? length : 1);
  return good ? code : U'\ufffd';
}

void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) code = U'\ufffd';
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

}  // namespace

std::optional<ElementType> element_type(std::string_view descr) {
  static const ElementType kTypes[] = {
      {ElementKind::real, "<f2", 2},    {ElementKind::real, "<f4", 4},    {ElementKind::real, "<f8", 8},
      {ElementKind::integer, "|i1", 1}, {ElementKind::integer, "<i2", 2}, {ElementKind::integer, "<i4", 4},
      {ElementKind::integer, "<i8", 8}, {ElementKind::integer, "|u1", 1}, {ElementKind::integer, "<u2", 2},
      {ElementKind::integer, "<u4", 4}, {ElementKind::integer, "<u8", 8}, {ElementKind::boolean, "|b1", 1}};
  for (const ElementType& type : kTypes)
    if (type.descr == descr) return type;
  if (!descr.starts_with("<U") && !descr.starts_with("|S")) return {};
  std::size_t length = 0;
  const std::string_view digits = descr.substr(2);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc() || end != digits.data() + digits.size() || length > kLongestText) return {};
  return ElementType{ElementKind::text, std::string(descr), descr[1] == 'U' ? 4 * length : length};
}

std::int64_t Array::size() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

std::string Array::text() const {
  std::string all = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) all += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return all + (shape.size() == 1 ? ",) " : ") ") + (type.bfloat16 ? "bf16" : type.descr);
}

Array make_array(std::span<const double> values, std::vector<std::int64_t> shape) {
  return from_numbers(values, std::move(shape), "<f8");
}

Array make_array(std::span<const std::int64_t> values, std::vector<std::int64_t> shape) {
  return from_numbers(values, std::move(shape), "<i8");
}

Array make_array(std::span<const std::uint64_t> values, std::vector<std::int64_t> shape) {
  return from_numbers(values, std::move(shape), "<u8");
}

Array make_array(std::span<const std::string> values) {
  std::vector<std::u32string> decoded(values.size());
  std::size_t longest = 1;  // numpy has no <U0 arrays of its own
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::string_view rest = values[i]; !rest.empty();) decoded[i] += take_code_point(rest);
    longest = std::max(longest, decoded[i].size());
  }
  Array array{
      {ElementKind::text, "<U" + std::to_string(longest), 4 * longest}, {static_cast<std::int64_t>(values.size())}, {}};
  auto data = allocate(array.bytes(), "a text column");
  if (array.bytes() != 0) std::memset(data.get(), 0, array.bytes());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!decoded[i].empty()) std::memcpy(data.get() + i * 4 * longest, decoded[i].data(), 4 * decoded[i].size());
  array.data = std::move(data);
  return array;
}

double element_f64(const Array& array, std::int64_t index) {
  if (array.type.kind == ElementKind::real) {
    if (array.type.bfloat16) return static_cast<double>(load<tmaops::bfloat16>(array, index));
    if (array.type.bytes == 2) return static_cast<double>(load<float16>(array, index));
    return array.type.bytes == 4 ? static_cast<double>(load<float>(array, index)) : load<double>(array, index);
  }
  if (array.type.descr == "<u8") return static_cast<double>(load<std::uint64_t>(array, index));
  return static_cast<double>(element_i64(array, index).value_or(0));
}

std::optional<std::int64_t> element_i64(const Array& array, std::int64_t index) {
  const bool is_signed = array.type.descr[1] == 'i';
  switch (array.type.bytes) {
    case 1:
      return is_signed ? std::int64_t{load<std::int8_t>(array, index)} : std::int64_t{load<std::uint8_t>(array, index)};
    case 2:
      return is_signed ? std::int64_t{load<std::int16_t>(array, index)}
                       : std::int64_t{load<std::uint16_t>(array, index)};
    case 4:
      return is_signed ? std::int64_t{load<std::int32_t>(array, index)}
                       : std::int64_t{load<std::uint32_t>(array, index)};
    default:
      break;
  }
  const auto value = load<std::int64_t>(array, index);
  if (!is_signed && value < 0) return {};
  return value;
}

std::string element_text(const Array& array, std::int64_t index) {
  const std::byte* at = array.data.get() + static_cast<std::size_t>(index) * array.type.bytes;
  std::string text;
  if (array.type.descr[1] == 'S') {
    text.assign(reinterpret_cast<const char*>(at), array.type.bytes);
    text.resize(text.find_last_not_of('\0') + 1);
    return text;
  }
  for (std::size_t i = 0; i < array.type.bytes / 4; ++i) {
    char32_t code;
    std::memcpy(&code, at + 4 * i, 4);
    append_utf8(text, code);
  }
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

void store_real(const ElementType& type, double value, std::byte* to) {
  if (type.bfloat16) {
    store(tmaops::bfloat16(value), to);
  } else if (type.bytes == 2) {
    store(float16(value), to);
  } else if (type.bytes == 4) {
    store(static_cast<float>(value), to);
  } else {
    store(value, to);
  }
}

}  // namespace tmaops::io
