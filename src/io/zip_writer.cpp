#include "io/zip_writer.hpp"

#include <zlib.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "io/file_error.hpp"
#include "io/output_file.hpp"
#include "io/zip_limits.hpp"
#include "tmaops/error.hpp"

namespace tmaops::io {
namespace {

constexpr std::uint64_t kMost32 = 0xffffffff;
constexpr int kVersion = 20, kVersion64 = 45;                // APPNOTE.TXT 4.4.3: deflate needs 2.0, zip64 4.5
constexpr std::uint64_t kDosDate = (0 << 9) | (1 << 5) | 1;  // 1980-01-01, the first there is: no clock in the output

// Appends a little-endian number.
void number(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
}

std::uint64_t low32(std::uint64_t value) { return std::min(value, kMost32); }

// Collects bytes as one raw deflate stream.
class Deflater {
 public:
  Deflater() {
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw Error(ErrorCode::out_of_memory, {.where = "zlib", .got = "no stream", .needed = "256 KiB of memory"});
  }
  ~Deflater() { deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void take(std::span<const std::byte> part) {
    while (!part.empty()) {
      const std::size_t step = std::min(part.size(), kZlibStep);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(part.data()));  // zlib only reads it
      stream_.avail_in = static_cast<uInt>(step);
      drain(Z_NO_FLUSH);
      part = part.subspan(step);
    }
  }
  std::string finish() {
    drain(Z_FINISH);
    return std::move(packed_);
  }

 private:
  void drain(int flush) {
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(chunk_.data());
      stream_.avail_out = static_cast<uInt>(chunk_.size());
      deflate(&stream_, flush);
      packed_.append(chunk_.data(), chunk_.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

  z_stream stream_{};
  std::string packed_;
  std::string chunk_ = std::string(std::size_t{1} << 18, '\0');
};

}  // namespace

void ZipWriter::put(std::string_view bytes) {
  file_.write(bytes);
  at_ += bytes.size();
}

void ZipWriter::add(std::string name, const Source& source, bool deflate) {
  Entry entry{std::move(name), false, 0, 0, 0, at_};
  uLong crc = crc32(0, nullptr, 0);
  std::optional<Deflater> deflater;
  if (deflate) deflater.emplace();
  source([&](std::span<const std::byte> part) {
    entry.size += part.size();
    if (deflater) deflater->take(part);
    while (!part.empty()) {
      const std::size_t step = std::min(part.size(), kZlibStep);
      crc = crc32(crc, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(step));
      part = part.subspan(step);
    }
  });
  entry.crc = static_cast<std::uint32_t>(crc);
  const std::string packed = deflater ? deflater->finish() : "";
  entry.deflated = deflate && packed.size() < entry.size;
  entry.packed_size = entry.deflated ? packed.size() : entry.size;

  const bool wide = entry.size >= kMost32;  // the packed size is never larger
  std::string header = "PK\x03\x04";
  number(header, wide ? kVersion64 : kVersion, 2);
  number(header, 0x0800, 2);  // names are UTF-8
  number(header, entry.deflated ? 8 : 0, 2);
  number(header, 0, 2);  // time 00:00:00
  number(header, kDosDate, 2);
  number(header, entry.crc, 4);
  number(header, wide ? kMost32 : entry.packed_size, 4);
  number(header, wide ? kMost32 : entry.size, 4);
  number(header, entry.name.size(), 2);
  number(header, wide ? 20 : 0, 2);
  header += entry.name;
  if (wide) {
    number(header, 1, 2);
    number(header, 16, 2);
    number(header, entry.size, 8);
    number(header, entry.packed_size, 8);
  }
  put(header);
  if (entry.deflated) {
    put(packed);
  } else {
    source([&](std::span<const std::byte> part) { put({reinterpret_cast<const char*>(part.data()), part.size()}); });
  }
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  const std::uint64_t start = at_;
  for (const Entry& entry : entries_) {
    const bool wide = entry.size >= kMost32 || entry.offset >= kMost32;
    std::string record = "PK\x01\x02";
    number(record, kVersion64, 2);
    number(record, wide ? kVersion64 : kVersion, 2);
    number(record, 0x0800, 2);
    number(record, entry.deflated ? 8 : 0, 2);
    number(record, 0, 2);
    number(record, kDosDate, 2);
    number(record, entry.crc, 4);
    number(record, wide ? kMost32 : entry.packed_size, 4);
    number(record, wide ? kMost32 : entry.size, 4);
    number(record, entry.name.size(), 2);
    number(record, wide ? 28 : 0, 2);
    number(record, 0, 2);  // comment
    number(record, 0, 2);  // disk
    number(record, 0, 2);  // internal attributes
    number(record, 0, 4);  // external attributes
    number(record, wide ? kMost32 : entry.offset, 4);
    record += entry.name;
    if (wide) {
      number(record, 1, 2);
      number(record, 24, 2);
      number(record, entry.size, 8);
      number(record, entry.packed_size, 8);
      number(record, entry.offset, 8);
    }
    put(record);
  }
  const std::uint64_t size = at_ - start;
  std::string end;
  if (entries_.size() >= 0xffff || start >= kMost32 || size >= kMost32) {
    const std::uint64_t record = at_;
    end = "PK\x06\x06";
    number(end, 44, 8);  // of the rest of this record
    number(end, kVersion64, 2);
    number(end, kVersion64, 2);
    number(end, 0, 8);  // disks
    number(end, entries_.size(), 8);
    number(end, entries_.size(), 8);
    number(end, size, 8);
    number(end, start, 8);
    end += "PK\x06\x07";
    number(end, 0, 4);
    number(end, record, 8);
    number(end, 1, 4);
  }
  const std::uint64_t count = std::min<std::uint64_t>(entries_.size(), 0xffff);
  end += "PK\x05\x06";
  number(end, 0, 4);
  number(end, count, 2);
  number(end, count, 2);
  number(end, low32(size), 4);
  number(end, low32(start), 4);
  number(end, 0, 2);
  put(end);
}

}  // namespace tmaops::io
