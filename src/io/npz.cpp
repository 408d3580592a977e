#include "io/npz.hpp"

#include <array>
#include <span>
#include <utility>

#include "io/file_error.hpp"
#include "io/npy.hpp"
#include "tmaops/error.hpp"

namespace tmaops::io {
namespace {
constexpr std::string_view kSuffix = ".npy";
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

bool NpzReader::has(std::string_view name) const {
  for (const std::string& other : names())
    if (other == name) return true;
  return false;
}

Array NpzReader::read(std::string_view name) const {
  for (const ZipMember& member : zip_.members()) {
    if (member.name != std::string(name) + std::string(kSuffix)) continue;
    Array array = parse_npy(zip_.read(member), where_ + ": array '" + display_text(name) + "'");
    if (array.type.descr == "<u2" && name.ends_with(kBfloat16Suffix)) array.type = {ElementKind::real, "<u2", 2, true};
    return array;
  }
  std::string there;
  for (const std::string& other : names()) there += (there.empty() ? "" : ", ") + display_text(other);
  throw Error(ErrorCode::array_missing, {.where = where_,
                                         .got = "no array '" + display_text(name) + "'",
                                         .needed = there.empty() ? "an archive with arrays" : "one of: " + there});
}

void NpzWriter::add(const std::string& name, const Array& array) {
  const std::string header = npy_header(array);
  const std::array<std::span<const std::byte>, 2> parts{std::as_bytes(std::span(header)), array.span()};
  zip_.add(name + std::string(kSuffix), parts, deflate_);
}

}  // namespace tmaops::io
