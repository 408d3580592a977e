#include "io/zip_reader.hpp"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/display.hpp"
#include "core/fail.hpp"

namespace tmaops::io {
namespace {

// Record sizes and flags, APPNOTE.TXT 4.3 and 4.4.
constexpr std::string_view kEndSignature = "PK\x05\x06";
constexpr std::uint64_t kEndRecord = 22;
constexpr std::uint64_t kLocator64 = 20;
constexpr std::uint64_t kEntry = 46;
constexpr std::uint64_t kLocalHeader = 30;
constexpr std::uint64_t kDeflated = 8;
constexpr std::uint64_t kWide = 0xffffffff;          // the value has eight bytes, in an extra field
constexpr std::size_t kStep = std::size_t{1} << 30;  // bytes that zlib is given at once
constexpr std::uint64_t kEncrypted = 1U << 0 | 1U << 6;
constexpr std::uint64_t kStreamed = 1U << 3;
constexpr std::uint64_t kPatched = 1U << 5;
constexpr std::uint64_t kNewestVersion = 63;  // 6.3, of APPNOTE.TXT; Python's zipfile refuses later ones too

[[noreturn]] void damaged(const std::string& where, std::string got, std::string needed) {
  fail(ErrorCode::bad_archive, where, got, needed);
}

std::string named(std::string_view name) { return "member '" + display_text(name) + "'"; }

// The entries of the directory, and of each the member that its local header leads to.
class Directory {
 public:
  Directory(const Bytes& file, const std::string& where) : file_(file), where_(where), end_(find_end()) {
    entries_ = field(end_ + 10, 2);
    at_ = field(end_ + 16, 4);
    if (end_ >= kLocator64 && file.text().substr(end_ - kLocator64).starts_with("PK\x06\x07")) {
      end_ = field(end_ - kLocator64 + 8, 8);
      entries_ = field(end_ + 32, 8);
      at_ = field(end_ + 48, 8);
    }
    start_ = at_;
  }

  bool more() {
    if (at_ > end_ || (at_ == end_) != (entries_ == 0))
      damaged(where_, "a directory that does not end where its end record starts", "a complete archive");
    return entries_ > 0;
  }
  /// The next member, which is one that can be read.
  ZipMember next() {
    if (field(at_, 4) != 0x02014b50) damaged(where_, "a directory entry that is none", "an entry");
    const std::uint64_t version = field(at_ + 6, 2) & 0xff, flags = field(at_ + 8, 2), length = field(at_ + 28, 2);
    const std::uint64_t extra = field(at_ + 30, 2), method = field(at_ + 10, 2);
    std::uint64_t header = field(at_ + 42, 4);
    ZipMember member{.name = std::string(file_.text().substr(at_ + kEntry, length)), .deflated = method == kDeflated};
    if ((flags & kEncrypted) != 0) damaged(where_, "the encrypted " + named(member.name), "no encryption");
    if ((flags & kPatched) != 0) damaged(where_, named(member.name) + " of patch data", "whole data");
    if (version > kNewestVersion)
      damaged(
          where_,
          named(member.name) + " of zip version " + std::to_string(version / 10) + "." + std::to_string(version % 10),
          "6.3 or older");
    if (method != 0 && method != kDeflated)
      damaged(where_, named(member.name) + " packed by method " + std::to_string(method), "stored (0) or deflated (8)");
    member.checksum = field(at_ + 16, 4);
    member.packed = field(at_ + 20, 4);
    member.size = field(at_ + 24, 4);
    std::uint64_t wide = wide_fields(at_ + kEntry + length, extra);
    for (std::uint64_t* value : {&member.size, &member.packed, &header})
      if (*value == kWide && wide != 0) *value = field(std::exchange(wide, wide + 8), 8);
    find_data(member, header, flags, method);
    at_ += kEntry + length + extra + field(at_ + 32, 2);
    --entries_;
    return member;
  }

 private:
  std::uint64_t field(std::uint64_t at, int bytes) const {
    if (at > file_.size || file_.size - at < static_cast<std::uint64_t>(bytes))
      damaged(where_, "a record that reaches past the end of the file", "a complete archive");
    std::uint64_t value = 0;
    for (int i = bytes; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(file_.data[at + i]);
    return value;
  }

  std::uint64_t find_end() const {
    if (file_.size == 0) fail(ErrorCode::bad_format, where_, "an empty file", "an npz archive");
    std::size_t at = file_.text().rfind(kEndSignature);
    if (at == std::string_view::npos || file_.size - at < kEndRecord)
      fail(ErrorCode::bad_format, where_,
           file_.text().starts_with("PK\x03\x04") ? "a zip archive whose end is missing" : "no zip archive",
           "an npz archive");
    while (at + kEndRecord > file_.size || field(at + 20, 2) != file_.size - at - kEndRecord) {  // in the comment
      at = at == 0 ? std::string_view::npos : file_.text().rfind(kEndSignature, at - 1);
      if (at == std::string_view::npos) damaged(where_, "an archive with bytes behind its end", "nothing behind it");
    }
    return at;
  }

  /// Where the fields of eight bytes start, in the extra fields of an entry; 0 where there are none.
  std::uint64_t wide_fields(std::uint64_t at, std::uint64_t bytes) const {
    for (const std::uint64_t end = at + bytes; at + 4 <= end; at += 4 + field(at + 2, 2))
      if (field(at, 2) == 1) return at + 4;
    return 0;
  }

  /// The data follow the local header, which says the same as the entry, or nothing where a stream was written.
  void find_data(ZipMember& member, std::uint64_t header, std::uint64_t flags, std::uint64_t method) const {
    const auto agrees = [&](std::uint64_t at, std::uint64_t value) {
      const std::uint64_t there = field(header + at, 4);
      return there == (value & kWide) || (at > 14 && there == kWide) || (there == 0 && (flags & kStreamed) != 0);
    };
    const std::uint64_t length = field(header + 26, 2);
    member.at = header + kLocalHeader + length + field(header + 28, 2);
    if (field(header, 4) != 0x04034b50 || field(header + 8, 2) != method || !agrees(14, member.checksum) ||
        !agrees(18, member.packed) || !agrees(22, member.size) ||
        file_.text().substr(header + kLocalHeader, length) != member.name)
      damaged(where_, named(member.name) + " with another local header", "one that agrees with the directory");
    if (member.at > start_ || member.packed > start_ - member.at)
      damaged(where_, named(member.name) + " that reaches into the directory", "members before the directory");
  }

  const Bytes& file_;
  const std::string& where_;
  std::uint64_t end_;  // where the record after the directory starts
  std::uint64_t entries_ = 0, at_ = 0, start_ = 0;
};

/// Expands raw deflated data into `to`. Returns the bytes that there are, one more than fit where there are more, and
/// nothing where the data are damaged.
std::optional<std::uint64_t> expand(std::span<const std::byte> packed, std::span<std::byte> to) {
  z_stream zlib{};
  int status = inflateInit2(&zlib, -MAX_WBITS);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ended(&zlib, inflateEnd);
  std::byte beyond{};
  std::uint64_t size = 0;
  while (status == Z_OK) {
    const std::span<std::byte> place = size < to.size() ? to.subspan(size) : std::span(&beyond, 1);
    zlib.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));  // zlib only reads it
    zlib.avail_in = static_cast<uInt>(std::min(packed.size(), kStep));
    zlib.next_out = reinterpret_cast<Bytef*>(place.data());
    zlib.avail_out = static_cast<uInt>(std::min(place.size(), kStep));
    status = inflate(&zlib, Z_NO_FLUSH);
    packed = packed.subspan(reinterpret_cast<std::byte*>(zlib.next_in) - packed.data());
    size += reinterpret_cast<std::byte*>(zlib.next_out) - place.data();
    if (size > to.size()) return size;
  }
  return status == Z_STREAM_END ? std::optional(size) : std::nullopt;
}

void check_name(const std::string& name, const std::string& where) {
  const auto refuse = [&](const char* why) {
    fail(ErrorCode::bad_member_name, where, "'" + display_text(name) + "', " + why, "a plain relative name");
  };
  if (name.empty()) refuse("an empty name");
  if (name.find('\0') != std::string::npos) refuse("with a zero byte");
  if (name.find('\\') != std::string::npos) refuse("with a backslash");
  if (name[0] == '/' || (name.size() > 1 && name[1] == ':')) refuse("an absolute path");
  if (("/" + name + "/").find("/../") != std::string::npos) refuse("which leads out of its folder");
}

void check_expansion(const std::vector<ZipMember>& members, std::uint64_t file_bytes, const std::string& where,
                     const ZipLimits& limits) {
  std::uint64_t claimed = 0;
  const ZipMember* largest = nullptr;
  for (const ZipMember& member : members) {
    if (!member.deflated) continue;
    if (member.size > limits.largest_member)
      fail(ErrorCode::zip_bomb, where, named(member.name) + " of " + std::to_string(member.size) + " bytes",
           "at most " + std::to_string(limits.largest_member) + " bytes after expansion");
    claimed += member.size;  // no overflow: each is below 64 GiB, and an entry takes 46 bytes of the file
    if (largest == nullptr || member.size > largest->size) largest = &member;
  }
  if (claimed <= limits.believed_bytes || (claimed - limits.believed_bytes) / limits.largest_ratio <= file_bytes)
    return;
  fail(ErrorCode::zip_bomb, where,
       std::to_string(file_bytes) + " bytes that expand to " + std::to_string(claimed) + ", the largest " +
           named(largest->name) + " to " + std::to_string(largest->size),
       "at most " + std::to_string(limits.largest_ratio) + " : 1 in an archive that expands to more than " +
           std::to_string(limits.believed_bytes) + " bytes",
       "If the data is honest, pass --trust-sizes, or save it without compression.");
}

}  // namespace

ZipReader::ZipReader(Bytes file, std::string where, ZipLimits limits)
    : file_(std::move(file)), where_(std::move(where)) {
  std::set<std::string> names;
  std::uint64_t packed = 0;
  for (Directory directory(file_, where_); directory.more();) {
    const ZipMember member = directory.next();
    check_name(member.name, where_);
    if (!names.insert(member.name).second)
      fail(ErrorCode::bad_member_name, where_, "two members '" + display_text(member.name) + "'", "different names");
    if (member.packed > file_.size - packed)
      damaged(where_, named(member.name) + ", which shares bytes with others", "bytes of its own for each member");
    packed += member.packed;
    if (!member.deflated && member.size != member.packed)
      damaged(where_, "the stored " + named(member.name) + " with two sizes", "equal sizes");
    members_.push_back(member);
  }
  check_expansion(members_, file_.size, where_, limits);
}

Bytes ZipReader::read(const ZipMember& member) const {
  const std::string name = named(member.name), needed = std::to_string(member.size) + " bytes";
  auto data = allocate(member.size, where_ + ": " + name);
  const std::span<const std::byte> packed = file_.span().subspan(member.at, member.packed);
  std::optional<std::uint64_t> size = member.size;
  if (member.deflated)
    size = expand(packed, {data.get(), member.size});
  else
    std::ranges::copy(packed, data.get());
  if (size > member.size) fail(ErrorCode::zip_bomb, where_, name + " that expands to more than it says", needed);
  if (size != member.size) damaged(where_, name + " whose packed data are damaged", needed);
  if (crc32_z(0, reinterpret_cast<const Bytef*>(data.get()), member.size) != member.checksum)
    damaged(where_, name + " with another checksum than it had", "the same CRC-32");
  return {std::move(data), member.size};
}

}  // namespace tmaops::io
