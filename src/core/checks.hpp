// The checks every operator makes on its tensor arguments, with messages that name the argument.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tmaops/error.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops {

/// Checks the arguments of one operator. Every method throws Error with `op: argument` as the place.
class ArgumentChecks {
 public:
  explicit ArgumentChecks(std::string_view op) : op_(op) {}

  /// What every argument goes through first, since views may have been filled field by field: a rank from 0 to
  /// kMaxRank, no negative extent, an element type and a device type that exist.
  void view(std::string_view argument, const ConstTensorView& tensor) const;
  void views(std::initializer_list<std::pair<std::string_view, ConstTensorView>> arguments) const;
  /// A list with entries has memory behind it.
  template <class T>
  void list(std::string_view argument, std::span<const T> entries) const {
    if (entries.data() == nullptr && !entries.empty())
      fail(ErrorCode::null_pointer, argument, "null with " + std::to_string(entries.size()) + " entries", "memory");
  }
  /// `value` is one of the `count` enumerators of an option.
  template <class Enum>
  void enumerator(std::string_view argument, Enum value, std::size_t count, std::string_view needed) const {
    if (static_cast<std::size_t>(value) >= count)
      fail(ErrorCode::bad_parameter, argument, std::to_string(static_cast<std::size_t>(value)), std::string(needed));
  }
  /// `value` is one of the enumerators of these names.
  template <class Enum>
  void enumerator(std::string_view argument, Enum value, std::initializer_list<std::string_view> names) const {
    if (static_cast<std::size_t>(value) >= names.size())
      no_enumerator(argument, static_cast<std::size_t>(value), names);
  }

  /// Number of dimensions; `needed` is the shape in words, for example "(N, S, M, D)".
  void rank(std::string_view argument, const Layout& layout, std::initializer_list<int> allowed,
            std::string_view needed) const;
  /// Exact extents; -1 stands for any. `needed` as above.
  void shape(std::string_view argument, const Layout& layout, std::initializer_list<std::int64_t> extents,
             std::string_view needed) const;
  void dtype(std::string_view argument, const ConstTensorView& tensor, std::initializer_list<DType> allowed) const;
  /// Both dtypes must be equal.
  void same_dtype(std::string_view argument, const ConstTensorView& tensor, std::string_view other_argument,
                  const ConstTensorView& other) const;
  void same_device(std::string_view argument, const ConstTensorView& tensor, std::string_view other_argument,
                   const ConstTensorView& other) const;
  /// view(), and memory behind the tensor: not null when it has elements, aligned to the element size, byte range
  /// within 64 bits.
  void memory(std::string_view argument, const ConstTensorView& tensor) const;
  /// memory(), and every element has a place of its own.
  void writable(std::string_view argument, const ConstTensorView& tensor) const;
  /// The output shares no byte with the other tensor.
  void no_overlap(std::string_view output, const ConstTensorView& tensor, std::string_view other_argument,
                  const ConstTensorView& other) const;

  [[noreturn]] void fail(ErrorCode code, std::string_view argument, std::string got, std::string needed,
                         std::string mend = {}) const;

 private:
  [[noreturn]] void no_enumerator(std::string_view argument, std::size_t value,
                                  std::initializer_list<std::string_view> names) const;

  std::string_view op_;
};

/// Bytes a view spans, relative to its pointer: [first, last). Throws Error (size_overflow).
struct ByteRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool empty() const { return first == last; }
};
ByteRange byte_range(const ConstTensorView& tensor);

/// Whether two views may share a byte. Exact for dense views and for slices of a common row pitch; where it cannot
/// tell, it says yes.
bool may_overlap(const ConstTensorView& a, const ConstTensorView& b);

/// Whether every index has an element of its own. Says no for a few exotic layouts that interleave without overlap.
bool has_distinct_elements(const Layout& layout);

/// The largest power of two, up to 16, that divides the byte address of every row (the elements of the last dimension).
int row_alignment(const ConstTensorView& tensor);

}  // namespace tmaops
