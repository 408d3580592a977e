// Reading zip archives that may be damaged or made to mislead: libzip reads them, this class checks what they claim.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "offers/input_file.hpp"

struct zip;  // of libzip

namespace tmaops::io {

/// How far an archive may expand. Deflate reaches 1032 : 1, and arrays of measured values 2 : 1 to 20 : 1. All deflated
/// members together may claim `believed_bytes`, as masks of zeros do, and beyond that `largest_ratio` times the size
/// of the file.
struct ZipLimits {
  std::uint64_t largest_ratio = 200;
  std::uint64_t believed_bytes = std::uint64_t{16} << 20;
  std::uint64_t largest_member = std::uint64_t{64} << 30;  // bytes after expansion

  /// Allows every ratio that deflate reaches.
  static ZipLimits trusting() { return {.largest_ratio = 2000}; }
};

struct ZipMember {
  std::string name;
  std::uint64_t index = 0;  // in the archive
  bool deflated = false;
  std::uint64_t size = 0;  // bytes after expansion
};

/// The members of an archive in memory. The constructor checks that the directory and the local headers agree, that
/// names are plain and different, that members are stored or deflated and not encrypted, and the limits. Throws Error
/// bad_format (no zip at all, or a build without libzip), bad_archive, bad_member_name, zip_bomb.
class ZipReader {
 public:
  ZipReader(Bytes file, std::string where, ZipLimits limits = {});

  const std::vector<ZipMember>& members() const { return members_; }
  /// The expanded bytes of a member, checked against its size and CRC-32. Throws Error bad_archive, zip_bomb,
  /// out_of_memory.
  Bytes read(const ZipMember& member) const;

 private:
  Bytes file_;  // archive_ reads it
  std::string where_;
  std::shared_ptr<zip> archive_;
  std::vector<ZipMember> members_;
};

}  // namespace tmaops::io
