#include "recording/array.hpp"

#include <bit>
#include <charconv>
#include <cstring>
#include <new>

#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "core/utf8.hpp"
#include "tmaops/dtype.hpp"

namespace tmaops::recording {
namespace {

static_assert(std::endian::native == std::endian::little, "files and memory have the same byte order");

constexpr std::size_t kLongestText =
    (std::size_t{1} << 29) - 1;  // characters of one element: numpy counts bytes in 31 bits

template <class T>
T load(const Array& array, std::int64_t index) {
  T value;
  std::memcpy(&value, array.data.get() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

/// Calls call(T{}) for the C++ type of real numbers.
template <class Call>
auto with_real_type(const ElementType& type, const Call& call) {
  if (type.bfloat16) return call(tmaops::bfloat16{});
  if (type.bytes == 2) return call(float16{});
  if (type.bytes == 4) return call(float{});
  return call(double{});
}

template <class T>
Array from_numbers(std::span<const T> values, std::vector<std::int64_t> shape, std::string_view descr) {
  auto data = allocate(values.size_bytes(), "an array");
  if (!values.empty()) std::memcpy(data.get(), values.data(), values.size_bytes());
  return {*element_type(descr), std::move(shape), std::move(data)};
}

}  // namespace

std::shared_ptr<std::byte[]> allocate(std::uint64_t size, std::string_view what) {
  try {
    return std::shared_ptr<std::byte[]>(new std::byte[size]);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, what, std::to_string(size) + " bytes asked for", "memory");
  }
}

std::optional<ElementType> element_type(std::string_view descr) {
  static const ElementType kTypes[] = {
      {ElementKind::real, "<f2", 2},     {ElementKind::real, "<f4", 4},     {ElementKind::real, "<f8", 8},
      {ElementKind::integer, "|i1", 1},  {ElementKind::integer, "<i2", 2},  {ElementKind::integer, "<i4", 4},
      {ElementKind::integer, "<i8", 8},  {ElementKind::integer, "|u1", 1},  {ElementKind::integer, "<u2", 2},
      {ElementKind::integer, "<u4", 4},  {ElementKind::integer, "<u8", 8},  {ElementKind::boolean, "|b1", 1},
      {ElementKind::time, "<M8[s]", 8},  {ElementKind::time, "<M8[ms]", 8}, {ElementKind::time, "<M8[us]", 8},
      {ElementKind::time, "<M8[ns]", 8}, {ElementKind::row, "rows", 8}};
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
  return "(" + joined(shape) + (shape.size() == 1 ? ",) " : ") ") + (type.bfloat16 ? "bf16" : type.descr);
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

Array make_booleans(std::span<const std::uint8_t> values) { return from_numbers(values, {std::ssize(values)}, "|b1"); }

Array make_text_array(std::span<const std::string_view> values) {
  std::size_t bytes = 0;
  for (const std::string_view value : values) bytes += value.size();
  const auto data = allocate(bytes, "a text column");
  const auto places = allocate(values.size() * sizeof(TextSpan), "a text column");
  std::shared_ptr<TextSpan[]> texts(places, reinterpret_cast<TextSpan*>(places.get()));
  std::size_t at = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    texts[static_cast<std::ptrdiff_t>(i)] = {at, values[i].size()};
    if (!values[i].empty()) std::memcpy(data.get() + at, values[i].data(), values[i].size());
    at += values[i].size();
  }
  return {kText, {static_cast<std::int64_t>(values.size())}, data, std::move(texts)};
}

double element_f64(const Array& array, std::int64_t index) {
  if (array.type.kind == ElementKind::real)
    return with_real_type(array.type, [&]<class T>(T) { return static_cast<double>(load<T>(array, index)); });
  if (array.type.descr == "<u8") return static_cast<double>(load<std::uint64_t>(array, index));
  return static_cast<double>(element_i64(array, index).value_or(0));
}

void load_f64(const Array& array, std::int64_t first, std::int64_t step, std::int64_t count, double* to,
              std::int64_t to_step) {
  const auto convert = [&]<class T>(T) {
    const std::byte* from = array.data.get() + static_cast<std::size_t>(first) * sizeof(T);
    const auto stride = static_cast<std::size_t>(step) * sizeof(T);
    if (stride == sizeof(T) && to_step == 1) {  // a loop that compilers make vectors of
      for (std::int64_t i = 0; i < count; ++i) {
        T value;
        std::memcpy(&value, from + static_cast<std::size_t>(i) * sizeof(T), sizeof value);
        to[i] = static_cast<double>(value);
      }
      return;
    }
    for (std::int64_t i = 0; i < count; ++i, from += stride, to += to_step) {
      T value;
      std::memcpy(&value, from, sizeof value);
      *to = static_cast<double>(value);
    }
  };
  if (array.type.kind == ElementKind::real) return with_real_type(array.type, convert);
  for (std::int64_t i = 0; i < count; ++i) to[i * to_step] = element_f64(array, first + i * step);
}

void store_reals(const ElementType& type, const double* from, std::int64_t from_step, std::int64_t count, std::byte* to,
                 std::int64_t step) {
  const auto convert = [&]<class T>(T) {
    const auto stride = static_cast<std::size_t>(step) * sizeof(T);
    for (std::int64_t i = 0; i < count; ++i, from += from_step, to += stride) {
      const T value = static_cast<T>(*from);
      std::memcpy(to, &value, sizeof value);
    }
  };
  with_real_type(type, convert);
}

std::optional<std::int64_t> element_i64(const Array& array, std::int64_t index) {
  const bool is_signed = array.type.descr[1] != 'u';  // bytes of booleans are 0 and 1
  const std::size_t bytes = array.type.bytes;
  std::int64_t value = 0;
  std::memcpy(&value, array.data.get() + static_cast<std::size_t>(index) * bytes, bytes);
  const std::size_t unused = 8 * (sizeof value - bytes);  // bits
  if (is_signed) return value << unused >> unused;
  if (value < 0) return {};
  return value;
}

std::string_view ragged_text(const Array& array, std::int64_t index) {
  const TextSpan span = array.texts[index];
  return {reinterpret_cast<const char*>(array.data.get()) + span.start, span.length};
}

std::string element_text(const Array& array, std::int64_t index) {
  if (array.ragged()) return repaired_utf8(ragged_text(array, index));
  const std::byte* at = array.data.get() + static_cast<std::size_t>(index) * array.type.bytes;
  std::string text;
  const bool bytes = array.type.descr[1] == 'S';
  if (bytes) text.assign(reinterpret_cast<const char*>(at), array.type.bytes);
  for (std::size_t i = 0; !bytes && i < array.type.bytes / 4; ++i) {
    char32_t code;
    std::memcpy(&code, at + 4 * i, 4);
    append_utf8(text, code);
  }
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

std::string element_digits(const Array& array, std::int64_t index) {
  if (const auto value = element_i64(array, index)) return std::to_string(*value);
  return std::to_string(load<std::uint64_t>(array, index));
}

Array real_array(const Array& array) {
  if (array.type.kind == ElementKind::real) return array;
  std::vector<double> values(static_cast<std::size_t>(array.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element_f64(array, static_cast<std::int64_t>(i));
  return make_array(values, array.shape);
}

Array take_rows(const Array& array, std::span<const std::int64_t> rows, std::string_view what) {
  Array to{array.type, array.shape, {}};
  to.shape.at(0) = static_cast<std::int64_t>(rows.size());
  if (array.ragged()) {  // the texts are not moved
    const auto places = allocate(rows.size() * sizeof(TextSpan), what);
    std::shared_ptr<TextSpan[]> texts(places, reinterpret_cast<TextSpan*>(places.get()));
    for (std::size_t i = 0; i < rows.size(); ++i)
      texts[static_cast<std::ptrdiff_t>(i)] = rows[i] < 0 ? TextSpan{} : array.texts[rows[i]];
    to.texts = std::move(texts);
    to.data = array.data;
    return to;
  }
  std::size_t row_bytes = array.type.bytes;
  for (std::size_t i = 1; i < array.shape.size(); ++i) row_bytes *= static_cast<std::size_t>(array.shape[i]);
  auto data = allocate(to.bytes(), what);
  std::byte* at = data.get();
  for (const std::int64_t row : rows) {
    if (row_bytes == 0) break;
    if (row >= 0) {
      std::memcpy(at, array.data.get() + static_cast<std::size_t>(row) * row_bytes, row_bytes);
    } else if (array.type.kind == ElementKind::time || array.type.kind == ElementKind::row) {
      const std::int64_t none = array.type.kind == ElementKind::row ? -1 : kNotATime;
      for (std::size_t i = 0; i < row_bytes; i += sizeof none) std::memcpy(at + i, &none, sizeof none);
    } else {
      std::memset(at, array.type.kind == ElementKind::real ? 0xff : 0, row_bytes);  // NaN, or 0
    }
    at += row_bytes;
  }
  to.data = std::move(data);
  return to;
}

}  // namespace tmaops::recording
