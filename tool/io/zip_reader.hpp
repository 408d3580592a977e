// Reading zip archives that may be damaged or made to mislead: every claim is checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "offers/input_file.hpp"

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
  bool deflated = false;
  std::uint64_t size = 0;    // bytes after expansion
  std::uint64_t at = 0;      // where its data start in the file
  std::uint64_t packed = 0;  // bytes there
  std::uint64_t checksum = 0;
};

/// The members of an archive in memory. The constructor checks that the directory and the local headers agree, that
/// names are plain and different, that members are stored or deflated and not encrypted, and the limits. Throws Error
/// bad_format (no zip at all), bad_archive, bad_member_name, zip_bomb.
class ZipReader {
 public:
  ZipReader(Bytes file, std::string where, ZipLimits limits = {});

  const std::vector<ZipMember>& members() const { return members_; }
  /// The expanded bytes of a member, checked against its size and CRC-32. Throws Error bad_archive, zip_bomb,
  /// out_of_memory.
  Bytes read(const ZipMember& member) const;

 private:
  Bytes file_;
  std::string where_;
  std::vector<ZipMember> members_;
};

}  // namespace tmaops::io
