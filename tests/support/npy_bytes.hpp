// Byte-by-byte npy and zip files for tests, also wrong ones; made here and not by the writers under test.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "offers/input_file.hpp"
#include "recording/array.hpp"

namespace tmaops::test {

inline io::Bytes bytes_of(std::string_view text) {
  auto data = recording::allocate(text.size(), "test");
  if (!text.empty()) std::memcpy(data.get(), text.data(), text.size());
  return {std::move(data), text.size()};
}

inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  return text;
}

/// Magic, version, header length (the true one unless given) and header.
inline std::string npy_prefix(std::string_view header, int version = 1, std::int64_t length = -1) {
  const auto claimed = static_cast<std::uint64_t>(length < 0 ? static_cast<std::int64_t>(header.size()) : length);
  return std::string("\x93NUMPY") + static_cast<char>(version) + std::string(1, '\0') +
         little(claimed, version == 1 ? 2 : 4) + std::string(header);
}

inline std::string npy(std::string_view descr, std::string_view shape, std::string_view data, bool fortran = false,
                       int version = 1) {
  const std::string header = "{'descr': '" + std::string(descr) +
                             "', 'fortran_order': " + (fortran ? "True" : "False") +
                             ", 'shape': " + std::string(shape) + ", }\n";
  return npy_prefix(header, version) + std::string(data);
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string deflated(std::string_view text) {
  std::string packed(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// A zip member whose every number can be falsified after make().
struct ZipPart {
  std::string name;
  std::string packed;
  std::uint64_t method = 0;
  std::uint64_t size = 0;
  std::uint64_t crc = 0;
  std::uint64_t flags = 0;
  bool zip64 = false;     // sizes in a zip64 field of the local header, as numpy writes them
  bool streamed = false;  // sizes behind the data, as Python writes to a pipe

  static ZipPart make(std::string name, std::string_view content, bool deflate = false) {
    ZipPart part;
    part.name = std::move(name);
    part.packed = deflate ? deflated(content) : std::string(content);
    part.method = deflate ? 8 : 0;
    part.size = content.size();
    part.crc = crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    return part;
  }
};

inline std::string zip(const std::vector<ZipPart>& parts) {
  std::string file, directory;
  for (const ZipPart& part : parts) {
    const std::uint64_t offset = file.size(), packed = part.packed.size();
    const std::uint64_t flags = part.flags | (part.streamed ? 8U : 0U);
    const std::string extra = part.zip64 ? little(1, 2) + little(16, 2) + little(part.size, 8) + little(packed, 8) : "";
    const std::uint64_t in64 = 0xffffffff;
    file += "PK\x03\x04" + little(20, 2) + little(flags, 2) + little(part.method, 2) + little(0, 4) +
            little(part.streamed ? 0 : part.crc, 4) +
            little(part.zip64      ? in64
                   : part.streamed ? 0
                                   : packed,
                   4) +
            little(part.zip64      ? in64
                   : part.streamed ? 0
                                   : part.size,
                   4) +
            little(part.name.size(), 2) + little(extra.size(), 2) + part.name + extra + part.packed;
    if (part.streamed) file += "PK\x07\x08" + little(part.crc, 4) + little(packed, 4) + little(part.size, 4);
    directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + little(flags, 2) + little(part.method, 2) +
                 little(0, 4) + little(part.crc, 4) + little(packed, 4) + little(part.size, 4) +
                 little(part.name.size(), 2) + little(0, 2) + little(0, 2) + little(0, 2) + little(0, 2) +
                 little(0, 4) + little(offset, 4) + part.name;
  }
  return file + directory + "PK\x05\x06" + little(0, 4) + little(parts.size(), 2) + little(parts.size(), 2) +
         little(directory.size(), 4) + little(file.size(), 4) + little(0, 2);
}

}  // namespace tmaops::test
