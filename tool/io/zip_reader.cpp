#include "io/zip_reader.hpp"

#include <zip.h>

#include <algorithm>
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
constexpr std::uint64_t kEncrypted = 1U << 0 | 1U << 6;
constexpr std::uint64_t kPatched = 1U << 5;
constexpr std::uint64_t kNewestVersion = 63;  // 6.3, of APPNOTE.TXT; Python's zipfile refuses later ones too

[[noreturn]] void damaged(const std::string& where, std::string got, std::string needed) {
  fail(ErrorCode::bad_archive, where, got, needed);
}

std::string named(std::string_view name) { return "member '" + display_text(name) + "'"; }

std::shared_ptr<zip> open_archive(const Bytes& file, const std::string& where) {
  if (file.size == 0) fail(ErrorCode::bad_format, where, "an empty file", "an npz archive");
  zip_error_t error{};
  zip_source_t* source = zip_source_buffer_create(file.data.get(), file.size, 0, &error);
  zip_t* archive = source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
  if (archive != nullptr) return {archive, zip_discard};
  const int code = zip_error_code_zip(&error);
  const std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (source != nullptr) zip_source_free(source);
  if (code == ZIP_ER_MEMORY) fail(ErrorCode::out_of_memory, where, "no place for its directory", "memory");
  if (code == ZIP_ER_EXISTS) fail(ErrorCode::bad_member_name, where, "two members of one name", "different names");
  const bool has_end =
      file.size >= kEndRecord && file.text().rfind(kEndSignature, file.size - kEndRecord) != std::string_view::npos;
  if (code == ZIP_ER_NOZIP && !has_end)
    fail(ErrorCode::bad_format, where,
         file.text().starts_with("PK\x03\x04") ? "a zip archive whose end is missing" : "no zip archive",
         "an npz archive");
  damaged(where, "a damaged archive (" + text + ")", "a directory and local headers that agree");
}

// The entries of the directory as they are in the file. libzip does not tell the length of a name, nor the flags and
// the version of an entry.
class Directory {
 public:
  Directory(const Bytes& file, const std::string& where, zip_t* archive) : file_(file), where_(where) {
    int comment = 0;
    zip_get_archive_comment(archive, &comment, ZIP_FL_ENC_RAW);
    end_ = file.size - kEndRecord - static_cast<std::uint64_t>(comment);
    at_ = number(end_ + 16, 4);
    if (end_ >= kLocator64 && file.text().substr(end_ - kLocator64).starts_with("PK\x06\x07")) {
      end_ = number(end_ - kLocator64 + 8, 8);
      at_ = number(end_ + 48, 8);
    }
  }

  bool more() const {
    if (at_ > end_) damaged(where_, "a directory that does not end where its end record starts", "a complete archive");
    return at_ < end_;
  }
  /// The name of the next entry, which is one that can be read.
  std::string next() {
    if (number(at_, 4) != 0x02014b50) damaged(where_, "a directory entry that is none", "an entry");
    const std::uint64_t version = number(at_ + 6, 2) & 0xff, flags = number(at_ + 8, 2), length = number(at_ + 28, 2);
    const std::uint64_t rest = length + number(at_ + 30, 2) + number(at_ + 32, 2);
    const std::string name(file_.text().substr(at_ + kEntry, length));
    if ((flags & kEncrypted) != 0) damaged(where_, "the encrypted " + named(name), "no encryption");
    if ((flags & kPatched) != 0) damaged(where_, named(name) + " of patch data", "whole data");
    if (version > kNewestVersion)
      damaged(where_,
              named(name) + " that needs version " + std::to_string(version / 10) + "." + std::to_string(version % 10) +
                  " of the zip format",
              "version 6.3 or older");
    at_ += kEntry + rest;
    return name;
  }

 private:
  std::uint64_t number(std::uint64_t at, int bytes) const {
    if (at > file_.size || file_.size - at < static_cast<std::uint64_t>(bytes))
      damaged(where_, "a record that reaches past the end of the file", "a complete archive");
    std::uint64_t value = 0;
    for (int i = bytes; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(file_.data[at + i]);
    return value;
  }

  const Bytes& file_;
  const std::string& where_;
  std::uint64_t at_ = 0;
  std::uint64_t end_ = 0;  // where the record after the directory starts
};

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
    : file_(std::move(file)), where_(std::move(where)), archive_(open_archive(file_, where_)) {
  Directory directory(file_, where_, archive_.get());
  std::uint64_t packed = 0;
  for (std::uint64_t index = 0; directory.more(); ++index) {
    const std::string name = directory.next();
    check_name(name, where_);
    zip_stat_t status{};
    if (zip_stat_index(archive_.get(), index, 0, &status) != 0)
      damaged(where_, named(name) + ": " + zip_strerror(archive_.get()), "a member that can be read");
    if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE)
      damaged(where_, named(name) + " packed by method " + std::to_string(status.comp_method),
              "stored (0) or deflated (8)");
    const bool deflated = status.comp_method == ZIP_CM_DEFLATE;
    if (status.comp_size > file_.size - packed)
      damaged(where_, named(name) + ", up to which the members claim more bytes than the file has",
              "bytes of its own for each member");
    packed += status.comp_size;
    if (!deflated && status.size != status.comp_size)
      damaged(where_, "the stored " + named(name) + " with two sizes", "equal sizes");
    members_.push_back({name, index, deflated, status.size});
  }
  check_expansion(members_, file_.size, where_, limits);
}

Bytes ZipReader::read(const ZipMember& member) const {
  const std::string name = named(member.name), needed = std::to_string(member.size) + " bytes";
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> open(zip_fopen_index(archive_.get(), member.index, 0),
                                                               zip_fclose);
  if (!open) damaged(where_, name + ": " + zip_strerror(archive_.get()), "a member that can be read");
  auto data = allocate(member.size, where_ + ": " + name);
  std::uint64_t size = 0;
  zip_int64_t count = 1;
  while (count > 0 && size < member.size) {
    count = zip_fread(open.get(), data.get() + size, member.size - size);
    size += static_cast<std::uint64_t>(std::max<zip_int64_t>(count, 0));
  }
  // libzip compares the checksum when it has read the end. A member that lies about its size has more bytes here.
  std::byte beyond{};
  if (count > 0 || member.size == 0) count = zip_fread(open.get(), &beyond, 1);
  if (count > 0) fail(ErrorCode::zip_bomb, where_, name + " that expands to more than it says", needed);
  if (count < 0 && zip_error_code_zip(zip_file_get_error(open.get())) == ZIP_ER_CRC)
    damaged(where_, name + " with another checksum than it had", "the same CRC-32");
  if (count < 0 || size < member.size) damaged(where_, name + " whose packed data are damaged", needed);
  return {std::move(data), member.size};
}

}  // namespace tmaops::io
