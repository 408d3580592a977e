// Arrays of recordings: row-major, little-endian, of any element type of numpy that tmaops reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tmaops::recording {

/// Kinds of elements. Only reals have a value between two samples. A `time` is numpy's datetime64: an int64 count of
/// its unit since 1970, where the smallest int64 (NaT) is no time. A `row` stands for an element of any other type,
/// which its owner keeps: the int64 number of its row, of an earlier row with an equal element, or -1 for none.
enum class ElementKind : std::uint8_t { real, integer, boolean, text, time, row };

/// Element type in numpy's notation. numpy has no bfloat16. An array of it is stored as <u2 under a name that ends in
/// ".bf16" (npz member `pose.bf16`, file `pose.bf16.npy`) and has the flag `bfloat16` here.
struct ElementType {
  ElementKind kind = ElementKind::real;
  std::string descr = "<f8";  // "<f4", "|b1", "<U12"
  std::size_t bytes = 8;      // of one element
  bool bfloat16 = false;

  friend bool operator==(const ElementType&, const ElementType&) = default;
};

/// The type for numpy's descr, or "rows": <f2 <f4 <f8 |i1 <i2 <i4 <i8 |u1 <u2 <u4 <u8 |b1 <U# |S# <M8[s|ms|us|ns].
/// Nothing when it is another.
std::optional<ElementType> element_type(std::string_view descr);
inline constexpr std::string_view kBfloat16Suffix = ".bf16";

/// The place of one text in the data of a ragged array.
struct TextSpan {
  std::uint64_t start = 0;
  std::uint64_t length = 0;  // bytes
};

/// An array. Copies share the data.
struct Array {
  ElementType type{};
  std::vector<std::int64_t> shape{};
  std::shared_ptr<const std::byte[]> data{};
  /// Of a ragged array: texts of different lengths in one dimension, as UTF-8 in `data`. Its type is kText, with 0
  /// bytes per element. numpy has no such type; in an npz it becomes <U#.
  std::shared_ptr<const TextSpan[]> texts{};

  bool ragged() const { return texts != nullptr; }
  std::int64_t size() const;  // elements
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * type.bytes; }
  std::span<const std::byte> span() const { return {data.get(), bytes()}; }
  /// "(20, 3) <f4".
  std::string text() const;
};

/// The type of ragged arrays.
inline const ElementType kText{ElementKind::text, "text", 0};

/// Uninitialised memory. Throws Error out_of_memory naming `what`.
std::shared_ptr<std::byte[]> allocate(std::uint64_t size, std::string_view what);

/// Arrays from values, row-major in `shape` (whose product must be the number of values).
Array make_array(std::span<const double> values, std::vector<std::int64_t> shape);
Array make_array(std::span<const std::int64_t> values, std::vector<std::int64_t> shape);
Array make_array(std::span<const std::uint64_t> values, std::vector<std::int64_t> shape);
Array make_booleans(std::span<const std::uint8_t> values);
/// A ragged array of these texts, copied one after the other.
Array make_text_array(std::span<const std::string_view> values);

/// Element `index` of a real or integer array as f64 (rounded when an integer is above 2^53); of a boolean 0 or 1.
double element_f64(const Array& array, std::int64_t index);
/// Element of an integer, boolean or time array; nothing when a <u8 value does not fit.
std::optional<std::int64_t> element_i64(const Array& array, std::int64_t index);
/// Element of a text array as UTF-8, without the padding. Bytes of a ragged array that are not UTF-8 become U+FFFD.
std::string element_text(const Array& array, std::int64_t index);
/// The bytes of an element of a ragged array.
std::string_view ragged_text(const Array& array, std::int64_t index);
/// Element of an integer or boolean array in decimal.
std::string element_digits(const Array& array, std::int64_t index);
/// The value of an element of a time array that is no time (NaT).
inline constexpr std::int64_t kNotATime = std::numeric_limits<std::int64_t>::min();
/// Writes `count` elements, `step` apart from `first` on, as f64 to to[0], to[to_step], ...
void load_f64(const Array& array, std::int64_t first, std::int64_t step, std::int64_t count, double* to,
              std::int64_t to_step);
/// Writes from[0], from[from_step], ... rounded once to the real type, `step` elements apart from `to` on.
void store_reals(const ElementType& type, const double* from, std::int64_t from_step, std::int64_t count, std::byte* to,
                 std::int64_t step);

/// An array of integers or booleans as f64, each value exact or the nearest; an array of reals as it is.
Array real_array(const Array& array);
/// The rows of an array in the given order, bit by bit. -1 is a row without a value: NaN, 0, false, empty text, NaT.
/// `what` names the array in an error about memory.
Array take_rows(const Array& array, std::span<const std::int64_t> rows, std::string_view what);

}  // namespace tmaops::recording
