// Compressed text files: gzip (RFC 1952) and, where libzstd is built in, Zstandard (RFC 8878). Members of a zip archive
// are written as raw deflate (RFC 1951).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "offers/input_file.hpp"

namespace tmaops::io {

enum class Compression : std::uint8_t { none, gzip, zstd, deflate };

/// The compression that the last extension names: .gz or .zst.
Compression compression_of(const std::filesystem::path& path);
/// The path without the extension that names its compression.
std::filesystem::path without_compression(const std::filesystem::path& path);
/// The compression that the first bytes are those of.
Compression detect_compression(std::string_view bytes);

/// How far text may expand: to `believed_bytes`, and beyond them to `largest_ratio` times the packed bytes. Text of
/// measured values is packed 3 : 1 to 20 : 1.
struct ExpansionLimit {
  std::uint64_t largest_ratio = 200;
  std::uint64_t believed_bytes = std::uint64_t{16} << 20;
};

/// Expands all members or frames of the data. Throws Error bad_format (other first bytes; zstd where it is not built
/// in), bad_archive (damaged, cut off, or followed by something else), zip_bomb (`limit`), out_of_memory.
Bytes decompress(const Bytes& packed, Compression compression, const std::string& where,
                 const ExpansionLimit& limit = {});

/// Compresses text piece by piece. The same text gives the same bytes.
class Compressor {
 public:
  using Take = std::function<void(std::string_view)>;
  Compressor(Compression compression, Take take);
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  void write(std::string_view text);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tmaops::io
