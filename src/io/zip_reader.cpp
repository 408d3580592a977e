#include "io/zip_reader.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "io/file_error.hpp"
#include "tmaops/error.hpp"

namespace tmaops::io {
namespace {

// Record sizes and signatures, APPNOTE.TXT 4.3.
constexpr std::uint64_t kEndRecord = 22;
constexpr std::uint64_t kEndRecord64 = 56;
constexpr std::uint64_t kLocator64 = 20;
constexpr std::uint64_t kEntry = 46;
constexpr std::uint64_t kLocalHeader = 30;
constexpr std::uint64_t kLongestComment = 0xffff;
constexpr std::uint64_t kIn64 = 0xffffffff;  // "see the zip64 field"
constexpr std::string_view kEndSignature = "PK\x05\x06";
constexpr std::string_view kEndSignature64 = "PK\x06\x06";
constexpr std::string_view kLocatorSignature64 = "PK\x06\x07";
constexpr std::string_view kEntrySignature = "PK\x01\x02";
constexpr std::string_view kLocalSignature = "PK\x03\x04";
constexpr std::string_view kDescriptorSignature = "PK\x07\x08";
constexpr std::uint64_t kEncrypted = 1U << 0;
constexpr std::uint64_t kStreamed = 1U << 3;  // sizes and CRC follow the data
constexpr std::uint64_t kPatched = 1U << 5;
constexpr std::uint64_t kStronglyEncrypted = 1U << 6;
constexpr std::uint64_t kNewestVersion = 63;  // 6.3, of APPNOTE.TXT; Python's zipfile refuses later ones too

}  // namespace

ZipReader::ZipReader(Bytes file, std::string where, ZipLimits limits)
    : file_(std::move(file)), where_(std::move(where)), limits_(limits) {
  const Directory directory = find_directory();
  struct Range {
    std::uint64_t first, last;
  };
  std::vector<Range> ranges;
  std::set<std::string, std::less<>> names;
  std::uint64_t at = directory.offset;
  while (at < directory.end) {
    std::uint64_t local = 0;
    bool streamed = false;
    ZipMember member = read_entry(at, directory.end, local, streamed);
    check_name(member.name);
    if (!names.insert(member.name).second)
      throw Error(ErrorCode::bad_member_name, {.where = where_,
                                               .got = "two members named '" + display_text(member.name) + "'",
                                               .needed = "different names"});
    const std::uint64_t last = check_local_header(member, local, directory.offset, streamed);
    check_size(member);
    ranges.push_back({local, last});
    members_.push_back(std::move(member));
  }
  if (members_.size() != directory.entries)
    damaged(std::to_string(members_.size()) + " members in the directory",
            std::to_string(directory.entries) + ", as its end record says");
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].last) damaged("two members that share bytes", "a place of its own for each");
  check_expansion();
}

void ZipReader::damaged(std::string got, std::string needed) const {
  throw Error(ErrorCode::bad_archive, {.where = where_, .got = std::move(got), .needed = std::move(needed)});
}

std::uint64_t ZipReader::number(std::uint64_t at, int bytes) const {
  if (at > file_.size || file_.size - at < static_cast<std::uint64_t>(bytes))
    damaged("a record that reaches past the end of the file", "a complete archive");
  std::uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(file_.data[at + i]);
  return value;
}

bool ZipReader::signature(std::uint64_t at, std::string_view text) const {
  return at <= file_.size && file_.text().substr(at, text.size()) == text;
}

std::uint64_t ZipReader::find_end_record() const {
  if (file_.size == 0)
    throw Error(ErrorCode::bad_format, {.where = where_, .got = "an empty file", .needed = "an npz archive"});
  const std::uint64_t lowest =
      file_.size > kEndRecord + kLongestComment ? file_.size - kEndRecord - kLongestComment : 0;
  if (file_.size >= kEndRecord)
    for (std::uint64_t at = file_.size - kEndRecord + 1; at-- > lowest;)
      if (signature(at, kEndSignature) && at + kEndRecord + number(at + 20, 2) == file_.size) return at;
  throw Error(ErrorCode::bad_format,
              {.where = where_,
               .got = signature(0, kLocalSignature) ? "a zip archive whose end is missing" : "no zip archive",
               .needed = "an npz archive"});
}

ZipReader::Directory ZipReader::find_directory() const {
  const std::uint64_t end_record = find_end_record();
  if (number(end_record + 4, 2) != 0 || number(end_record + 6, 2) != 0)
    damaged("one part of an archive in several", "an archive in one file");
  Directory directory{number(end_record + 10, 2), number(end_record + 12, 4), number(end_record + 16, 4), end_record};
  if (end_record >= kLocator64 && signature(end_record - kLocator64, kLocatorSignature64)) {
    const std::uint64_t record = number(end_record - kLocator64 + 8, 8);
    if (!signature(record, kEndSignature64) || end_record - kLocator64 < record ||
        end_record - kLocator64 - record < kEndRecord64)
      damaged("a zip64 end record in the wrong place", "a complete archive");
    directory = {number(record + 32, 8), number(record + 40, 8), number(record + 48, 8), record};
  }
  if (directory.offset > directory.end || directory.end - directory.offset != directory.size)
    damaged("a directory that does not end where its end record starts", "a complete archive with nothing before it");
  return directory;
}

ZipMember ZipReader::read_entry(std::uint64_t& at, std::uint64_t end, std::uint64_t& local_offset,
                                bool& streamed) const {
  if (!signature(at, kEntrySignature) || end - at < kEntry) damaged("a directory entry that is none", "an entry");
  const std::uint64_t flags = number(at + 8, 2);
  const std::uint64_t method = number(at + 10, 2);
  const std::uint64_t name_length = number(at + 28, 2);
  const std::uint64_t extra_length = number(at + 30, 2);
  const std::uint64_t length = kEntry + name_length + extra_length + number(at + 32, 2);
  if (end - at < length) damaged("a directory entry that reaches past the directory", "a whole entry");
  ZipMember member;
  member.name = file_.text().substr(at + kEntry, name_length);
  if ((flags & (kEncrypted | kStronglyEncrypted)) != 0)
    damaged("the encrypted member '" + display_text(member.name) + "'", "no encryption");
  if ((flags & kPatched) != 0) damaged("member '" + display_text(member.name) + "' of patch data", "whole data");
  if (const std::uint64_t version = number(at + 6, 2) & 0xff; version > kNewestVersion)
    damaged("member '" + display_text(member.name) + "' that needs version " + std::to_string(version / 10) + "." +
                std::to_string(version % 10) + " of the zip format",
            "version 6.3 or older");
  if (method != 0 && method != 8)
    damaged("member '" + display_text(member.name) + "' packed by method " + std::to_string(method),
            "stored (0) or deflated (8)");
  member.deflated = method == 8;
  member.crc = static_cast<std::uint32_t>(number(at + 16, 4));
  member.packed_size = number(at + 20, 4);
  member.size = number(at + 24, 4);
  local_offset = number(at + 42, 4);
  streamed = (flags & kStreamed) != 0;

  // The zip64 field has, in this order, those of the three numbers that did not fit.
  const std::uint64_t extra_end = at + kEntry + name_length + extra_length;
  for (std::uint64_t field = at + kEntry + name_length; field + 4 <= extra_end;) {
    std::uint64_t value = field + 4;
    const std::uint64_t next = value + number(field + 2, 2);
    if (next > extra_end) damaged("an extra field that reaches past its entry", "a whole field");
    if (number(field, 2) == 1)
      for (std::uint64_t* target : {&member.size, &member.packed_size, &local_offset})
        if (*target == kIn64) {
          if (next - value < 8) damaged("a zip64 field without its sizes", "8 bytes for each");
          *target = number(value, 8);
          value += 8;
        }
    field = next;
  }
  at += length;
  return member;
}

// Checks the header before the data against the directory; the end of the member in the file.
std::uint64_t ZipReader::check_local_header(ZipMember& member, std::uint64_t at, std::uint64_t limit,
                                            bool streamed) const {
  const std::string name = "member '" + display_text(member.name) + "'";
  if (at > limit || limit - at < kLocalHeader || !signature(at, kLocalSignature))
    damaged(name + " without a local header", "a header where the directory says");
  const std::uint64_t name_length = number(at + 26, 2);
  const std::uint64_t extra_length = number(at + 28, 2);
  if (file_.text().substr(at + kLocalHeader, name_length) != member.name || number(at + 8, 2) != 8U * member.deflated ||
      ((number(at + 6, 2) & kStreamed) != 0) != streamed)
    damaged(name + " with a local header of another name or method", "the same in both places");
  const std::uint64_t data = at + kLocalHeader + name_length + extra_length;
  if (data > limit || limit - data < member.packed_size)
    damaged(name + " with " + std::to_string(member.packed_size) + " bytes that the file does not have",
            "all bytes of the member");
  member.data_offset = data;
  std::uint64_t end = data + member.packed_size;

  if (!streamed) {
    std::uint64_t size = number(at + 22, 4), packed = number(at + 18, 4);
    for (std::uint64_t field = data - extra_length; field + 4 <= data; field += 4 + number(field + 2, 2)) {
      if (number(field, 2) != 1 || field + 4 + number(field + 2, 2) > data) continue;
      std::uint64_t value = field + 4;
      for (std::uint64_t* target : {&size, &packed})
        if (*target == kIn64 && value + 8 <= data) {
          *target = number(value, 8);
          value += 8;
        }
    }
    if (size != member.size || packed != member.packed_size || number(at + 14, 4) != member.crc)
      damaged(name + " with another size or checksum in its local header", "the same in both places");
    return end;
  }
  // A data descriptor: an optional signature, CRC, and the two sizes in 4 or 8 bytes each.
  const std::uint64_t crc_at = end + (signature(end, kDescriptorSignature) ? 4 : 0);
  for (const int width : {8, 4}) {
    const std::uint64_t descriptor = crc_at + 4 + 2 * static_cast<std::uint64_t>(width);
    if (descriptor <= limit && number(crc_at, 4) == member.crc && number(crc_at + 4, width) == member.packed_size &&
        number(crc_at + 4 + static_cast<std::uint64_t>(width), width) == member.size)
      return descriptor;
  }
  damaged(name + " with other sizes or checksum behind its data", "the same in both places");
}

void ZipReader::check_name(const std::string& name) const {
  const auto refuse = [&](const char* why) {
    throw Error(ErrorCode::bad_member_name,
                {.where = where_, .got = "'" + display_text(name) + "', " + why, .needed = "a plain relative name"});
  };
  if (name.empty()) refuse("an empty name");
  if (name.find('\0') != std::string::npos) refuse("with a zero byte");
  if (name.find('\\') != std::string::npos) refuse("with a backslash");
  if (name[0] == '/' || (name.size() > 1 && name[1] == ':')) refuse("an absolute path");
  for (std::size_t start = 0; start <= name.size();) {
    const std::size_t end = std::min(name.find('/', start), name.size());
    if (std::string_view(name).substr(start, end - start) == "..") refuse("which leads out of its folder");
    start = end + 1;
  }
}

void ZipReader::check_size(const ZipMember& member) const {
  if (!member.deflated && member.size != member.packed_size) damaged("a stored member with two sizes", "equal sizes");
  if (member.deflated && member.size > limits_.largest_member)
    throw Error(ErrorCode::zip_bomb,
                {.where = where_,
                 .got = "member '" + display_text(member.name) + "' of " + std::to_string(member.size) + " bytes",
                 .needed = "at most " + std::to_string(limits_.largest_member) + " bytes after expansion"});
}

void ZipReader::check_expansion() const {
  std::uint64_t claimed = 0, largest = 0;
  std::string_view name;
  for (const ZipMember& member : members_) {
    if (!member.deflated) continue;
    claimed += member.size;  // no overflow: each is below 64 GiB, and an entry takes 46 bytes of the file
    if (member.size <= largest) continue;
    largest = member.size;
    name = member.name;
  }
  if (claimed <= limits_.believed_bytes || (claimed - limits_.believed_bytes) / limits_.largest_ratio <= file_.size)
    return;
  throw Error(
      ErrorCode::zip_bomb,
      {.where = where_,
       .got = std::to_string(file_.size) + " bytes that expand to " + std::to_string(claimed) +
              ", the largest member '" + display_text(name) + "' to " + std::to_string(largest),
       .needed = "at most " + std::to_string(limits_.largest_ratio) + " : 1 in an archive that expands to more than " +
                 std::to_string(limits_.believed_bytes) + " bytes",
       .mend = "If the data is honest, pass --trust-sizes, or save it without compression."});
}

}  // namespace tmaops::io
