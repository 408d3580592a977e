// Reading zip archives that may be damaged or made to mislead (APPNOTE.TXT 6.3.10: stored and deflated members, zip64).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_file.hpp"

namespace tmaops::io {

/// How far an archive may expand. Deflate reaches 1032 : 1, arrays of measured values 2 : 1 to 20 : 1. So all members
/// together may claim some bytes, as masks of zeros do, and beyond that so many times the size of the file.
struct ZipLimits {
  std::uint64_t largest_ratio = 200;
  std::uint64_t believed_bytes = std::uint64_t{16} << 20;  // of all members; no ratio is asked for below
  std::uint64_t largest_member = std::uint64_t{64} << 30;  // bytes after expansion

  /// None but that of deflate itself.
  static ZipLimits trusting() { return {.largest_ratio = 2000}; }
};

struct ZipMember {
  std::string name;
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t packed_size = 0;
  std::uint64_t size = 0;
  std::size_t data_offset = 0;  // of the packed bytes in the file
};

/// The members of an archive in memory. All structure is checked at the start: every record inside the file, local
/// headers and data descriptors that agree with the central directory, no two members that share bytes, plain and
/// different names. Throws Error bad_format (no zip at all), bad_archive, bad_member_name, zip_bomb.
class ZipReader {
 public:
  ZipReader(Bytes file, std::string where, ZipLimits limits = {});

  const std::vector<ZipMember>& members() const { return members_; }
  /// The bytes of a member, expanded, checked against its size and CRC-32. A stored member shares the file's memory.
  /// Throws Error bad_archive, zip_bomb, out_of_memory.
  Bytes read(const ZipMember& member) const;

 private:
  struct Directory {
    std::uint64_t entries = 0;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;
    std::uint64_t end = 0;  // where the record after the directory starts
  };

  Directory find_directory() const;
  std::uint64_t find_end_record() const;
  ZipMember read_entry(std::uint64_t& at, std::uint64_t end, std::uint64_t& local_offset, bool& streamed) const;
  std::uint64_t check_local_header(ZipMember& member, std::uint64_t at, std::uint64_t limit, bool streamed) const;
  void check_name(const std::string& name) const;
  void check_size(const ZipMember& member) const;
  void check_expansion() const;
  [[noreturn]] void damaged(std::string got, std::string needed) const;

  std::uint64_t number(std::uint64_t at, int bytes) const;
  bool signature(std::uint64_t at, std::string_view text) const;

  Bytes file_;
  std::string where_;
  ZipLimits limits_;
  std::vector<ZipMember> members_;
};

}  // namespace tmaops::io
