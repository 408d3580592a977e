#include "io/zip_writer.hpp"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "io/compression.hpp"
#include "offers/output_file.hpp"

namespace tmaops::io {
namespace {

constexpr std::uint64_t kMost32 = 0xffffffff;
constexpr std::uint64_t kVersion = 20, kVersion64 = 45;      // APPNOTE.TXT 4.4.3: deflate needs 2.0, zip64 4.5
constexpr std::uint64_t kDosDate = (0 << 9) | (1 << 5) | 1;  // 1980-01-01, the first one: the output shows no clock

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(static_cast<unsigned char>(value));
  return text;
}

std::string low32(std::uint64_t value) { return little(std::min(value, kMost32), 4); }

}  // namespace

// The fields that a local header and an entry of the directory share. `wide` sizes are in a zip64 field.
std::string ZipWriter::Entry::fields(bool wide, std::uint64_t extra_bytes) const {
  return little(wide ? kVersion64 : kVersion, 2) + little(0x0800, 2) +  // names are UTF-8
         little(deflated ? 8 : 0, 2) + little(0, 2) + little(kDosDate, 2) + little(crc, 4) +
         low32(wide ? kMost32 : packed_size) + low32(wide ? kMost32 : size) + little(name.size(), 2) +
         little(extra_bytes, 2);
}

void ZipWriter::put(std::string_view bytes) {
  file_.write(bytes);
  at_ += bytes.size();
}

void ZipWriter::add(std::string name, const Source& source, bool deflate) {
  Entry entry{.name = std::move(name), .offset = at_};
  std::string packed;
  Compressor deflater(deflate ? Compression::deflate : Compression::none,
                      [&](std::string_view piece) { packed += deflate ? piece : std::string_view(); });
  source([&](std::string_view part) {
    entry.size += part.size();
    entry.crc =
        static_cast<std::uint32_t>(crc32_z(entry.crc, reinterpret_cast<const Bytef*>(part.data()), part.size()));
    deflater.write(part);
  });
  deflater.finish();
  entry.deflated = deflate && packed.size() < entry.size;
  entry.packed_size = entry.deflated ? packed.size() : entry.size;

  const bool wide = entry.size >= kMost32;  // the packed size is never larger
  put("PK\x03\x04" + entry.fields(wide, wide ? 20 : 0) + entry.name);
  if (wide) put(little(1, 2) + little(16, 2) + little(entry.size, 8) + little(entry.packed_size, 8));
  if (entry.deflated) {
    put(packed);
  } else {
    source([&](std::string_view part) { put(part); });
  }
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  const std::uint64_t start = at_;
  for (const Entry& entry : entries_) {
    const bool wide = entry.size >= kMost32 || entry.offset >= kMost32;
    put("PK\x01\x02" + little(kVersion64, 2) + entry.fields(wide, wide ? 28 : 0) +
        little(0, 2 + 2 + 2 + 4) +  // comment, disk, internal and external attributes
        low32(wide ? kMost32 : entry.offset) + entry.name);
    if (wide)
      put(little(1, 2) + little(24, 2) + little(entry.size, 8) + little(entry.packed_size, 8) +
          little(entry.offset, 8));
  }
  const std::uint64_t end = at_, size = end - start, count = entries_.size();
  if (count >= 0xffff || start >= kMost32 || size >= kMost32)
    put("PK\x06\x06" + little(44, 8) +  // the bytes that follow in this record
        little(kVersion64, 2) + little(kVersion64, 2) + little(0, 4 + 4) + little(count, 8) + little(count, 8) +
        little(size, 8) + little(start, 8) + "PK\x06\x07" + little(0, 4) + little(end, 8) + little(1, 4));
  const std::string count16 = little(std::min<std::uint64_t>(count, 0xffff), 2);
  put("PK\x05\x06" + little(0, 4) + count16 + count16 + low32(size) + low32(start) + little(0, 2));
}

}  // namespace tmaops::io
