// Writing zip archives: one member after the other, the same bytes for the same input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tmaops::io {

class OutputFile;

/// Appends members to an OutputFile. Sizes and CRC are known before the header is written, so the archive needs no
/// seeking and no data descriptors; zip64 fields are there only where a number needs them. Time stamps are constant.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& file) : file_(file) {}
  /// Gives its bytes to `take`, piece by piece; every call gives the same ones.
  using Take = std::function<void(std::span<const std::byte>)>;
  using Source = std::function<void(const Take& take)>;
  /// A member of these bytes, which are asked for twice: a large member need not be in memory. Deflated when asked for
  /// and smaller so.
  void add(std::string name, const Source& source, bool deflate);
  /// Writes the directory. Nothing may be added after it.
  void finish();

 private:
  struct Entry {
    std::string name;
    bool deflated;
    std::uint32_t crc;
    std::uint64_t packed_size, size, offset;
  };
  void put(std::string_view bytes);

  OutputFile& file_;
  std::uint64_t at_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace tmaops::io
