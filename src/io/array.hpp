// Arrays as they come out of files and go into them: owned, row-major, little-endian, any element type of numpy's that
// tmaops reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tmaops::io {

/// What can be done with an element: only reals have a value between two samples.
enum class ElementKind : std::uint8_t { real, integer, boolean, text };

/// Element type in numpy's notation. numpy has no bfloat16: such an array is stored as <u2 under a name that ends in
/// ".bf16" (npz member `pose.bf16`, file `pose.bf16.npy`), and carries `bfloat16` here.
struct ElementType {
  ElementKind kind = ElementKind::real;
  std::string descr = "<f8";  // "<f4", "|b1", "<U12"
  std::size_t bytes = 8;      // of one element
  bool bfloat16 = false;

  friend bool operator==(const ElementType&, const ElementType&) = default;
};

/// The type for numpy's descr: <f2 <f4 <f8 |i1 <i2 <i4 <i8 |u1 <u2 <u4 <u8 |b1 <U# |S#. Nothing when it is another.
std::optional<ElementType> element_type(std::string_view descr);
inline constexpr std::string_view kBfloat16Suffix = ".bf16";

/// An array. Copies share the data.
struct Array {
  ElementType type{};
  std::vector<std::int64_t> shape{};
  std::shared_ptr<const std::byte[]> data{};

  std::int64_t size() const;  // elements
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * type.bytes; }
  std::span<const std::byte> span() const { return {data.get(), bytes()}; }
  /// "(20, 3) <f4".
  std::string text() const;
};

/// Arrays from values, row-major in `shape` (whose product must be the number of values).
Array make_array(std::span<const double> values, std::vector<std::int64_t> shape);
Array make_array(std::span<const std::int64_t> values, std::vector<std::int64_t> shape);
Array make_array(std::span<const std::uint64_t> values, std::vector<std::int64_t> shape);
/// UTF-8 text as <U#, with # the longest of them in code points. Bytes that are not UTF-8 become U+FFFD.
Array make_array(std::span<const std::string> values);

/// Element `index` of a real or integer array as f64 (rounded when an integer is above 2^53); of a boolean 0 or 1.
double element_f64(const Array& array, std::int64_t index);
/// Element of an integer or boolean array; nothing when a <u8 value does not fit.
std::optional<std::int64_t> element_i64(const Array& array, std::int64_t index);
/// Element of a text array as UTF-8, without the padding.
std::string element_text(const Array& array, std::int64_t index);
/// Stores a value rounded once to the array's real type, at `to` (type.bytes bytes).
void store_real(const ElementType& type, double value, std::byte* to);

}  // namespace tmaops::io
