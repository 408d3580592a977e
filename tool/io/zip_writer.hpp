// Writing zip archives: one member after the other, the same bytes for the same input. The tool's output may be a
// pipe, so nothing seeks back to fill in headers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tmaops::io {

class OutputFile;

/// Appends members to an OutputFile. Sizes and CRC are known before the header is written, so the archive needs no
/// seeking and no data descriptors. It has zip64 fields only where a number needs them. Timestamps are constant.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& file) : file_(file) {}
  /// Gives its bytes to `take`, piece by piece. Every call gives the same ones.
  using Take = std::function<void(std::string_view)>;
  using Source = std::function<void(const Take& take)>;
  /// Writes a member. Its bytes are asked for twice, so that a large member need not be in memory. They are deflated
  /// when that was asked for and makes them fewer.
  void add(std::string name, const Source& source, bool deflate);
  /// Writes the directory. Nothing may be added after it.
  void finish();

 private:
  struct Entry {
    std::string name{};
    bool deflated = false;
    std::uint32_t crc = 0;
    std::uint64_t packed_size = 0, size = 0, offset = 0;
    std::string fields(bool wide, std::uint64_t extra_bytes) const;
  };
  void put(std::string_view bytes);

  OutputFile& file_;
  std::uint64_t at_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace tmaops::io
