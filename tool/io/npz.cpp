#include "io/npz.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "core/utf8.hpp"
#include "io/npy.hpp"

namespace tmaops::io {
namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr std::size_t kConvertedPiece = std::size_t{1} << 16;  // code points converted at a time

template <class T>
std::string_view bytes_of(std::span<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// Every text in UTF-32, filled up with zeros to the length of the longest, a piece at a time.
void give_padded(const Array& array, std::size_t longest, const ZipWriter::Take& take) {
  std::vector<char32_t> piece;
  piece.reserve(kConvertedPiece);
  const auto put = [&](char32_t code) {
    piece.push_back(code);
    if (piece.size() < kConvertedPiece) return;
    take(bytes_of(std::span(piece)));
    piece.clear();
  };
  for (std::int64_t i = 0; i < array.size(); ++i) {
    std::size_t count = 0;
    for (std::string_view rest = ragged_text(array, i); !rest.empty(); ++count)
      put(take_code_point(rest).value_or(kReplacement));
    for (; count < longest; ++count) put(0);
  }
  take(bytes_of(std::span(piece)));
}

}  // namespace

std::size_t longest_text(const Array& array) {
  std::size_t longest = 1;  // numpy has no <U0 arrays of its own
  for (std::int64_t i = 0; i < array.size(); ++i) {
    std::size_t count = 0;
    for (std::string_view rest = ragged_text(array, i); !rest.empty(); ++count) take_code_point(rest);
    longest = std::max(longest, count);
  }
  return longest;
}

NpzReader::NpzReader(const std::filesystem::path& path, ZipLimits limits)
    : NpzReader(read_file(path), display(path), limits) {}

NpzReader::NpzReader(Bytes file, std::string where, ZipLimits limits)
    : where_(where), zip_(std::move(file), std::move(where), limits) {}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> all;
  for (const ZipMember& member : zip_.members())
    if (member.name.ends_with(kSuffix)) all.push_back(member.name.substr(0, member.name.size() - kSuffix.size()));
  return all;
}

Array NpzReader::read(std::string_view name) const {
  for (const ZipMember& member : zip_.members()) {
    if (member.name != std::string(name) + std::string(kSuffix)) continue;
    return parse_npy(zip_.read(member), where_ + ": array '" + display_text(name) + "'", name);
  }
  const std::string there = joined(names(), ", ", display_text);
  fail(ErrorCode::array_missing, where_, "no array '" + display_text(name) + "'",
       there.empty() ? "an archive with arrays" : "one of: " + there);
}

void NpzWriter::add(const std::string& name, const Array& array) {
  const auto add = [&](const Array& header_of, const ZipWriter::Source& data) {
    const std::string header = npy_header(header_of);
    zip_.add(
        name + std::string(kSuffix),
        [&](const ZipWriter::Take& take) {
          take(header);
          data(take);
        },
        deflate_);
  };
  if (!array.ragged()) return add(array, [&](const ZipWriter::Take& take) { take(bytes_of(array.span())); });
  const std::size_t longest = longest_text(array);
  Array padded;
  padded.type = {ElementKind::text, "<U" + std::to_string(longest), 4 * longest};
  padded.shape = array.shape;
  add(padded, [&](const ZipWriter::Take& take) { give_padded(array, longest, take); });
}

}  // namespace tmaops::io
