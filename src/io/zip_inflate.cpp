// The bytes of a zip member: zlib for deflated ones, and the CRC-32 of all.
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "io/file_error.hpp"
#include "io/zip_limits.hpp"
#include "io/zip_reader.hpp"
#include "tmaops/error.hpp"

namespace tmaops::io {
namespace {

class Inflater {
 public:
  Inflater() : good_(inflateInit2(&stream_, -MAX_WBITS) == Z_OK) {}  // negative: raw deflate, as zip has it
  ~Inflater() {
    if (good_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Expands `from` into `to`. True when the stream ends exactly with both; `overrun` when it has more than fits.
  bool run(std::span<const std::byte> from, std::span<std::byte> to, bool& overrun) {
    int status = good_ ? Z_OK : Z_MEM_ERROR;
    std::byte beyond{};  // one byte more than promised shows a member that lies about its size
    bool in_beyond = false;
    while (status == Z_OK) {
      if (stream_.avail_in == 0) {
        const std::size_t part = std::min(from.size(), kZlibStep);
        // zlib does not write through next_in; its type is not const only for historical reasons.
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data()));
        stream_.avail_in = static_cast<uInt>(part);
        from = from.subspan(part);
      }
      if (stream_.avail_out == 0) {
        if (in_beyond) break;
        const std::size_t part = std::min(to.size(), kZlibStep);
        in_beyond = part == 0;
        stream_.next_out = reinterpret_cast<Bytef*>(in_beyond ? &beyond : to.data());
        stream_.avail_out = in_beyond ? 1 : static_cast<uInt>(part);
        to = to.subspan(part);
      }
      status = inflate(&stream_, Z_NO_FLUSH);
    }
    overrun = in_beyond && stream_.avail_out == 0;
    const bool all_written = in_beyond ? !overrun : stream_.avail_out == 0 && to.empty();
    return status == Z_STREAM_END && all_written && stream_.avail_in == 0 && from.empty();
  }

 private:
  z_stream stream_{};
  bool good_;
};

std::uint32_t crc_of(std::span<const std::byte> bytes) {
  uLong crc = crc32(0, nullptr, 0);
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kZlibStep);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(part));
    bytes = bytes.subspan(part);
  }
  return static_cast<std::uint32_t>(crc);
}

}  // namespace

Bytes ZipReader::read(const ZipMember& member) const {
  const std::string name = "member '" + display_text(member.name) + "'";
  const std::span<const std::byte> packed = file_.span().subspan(member.data_offset, member.packed_size);
  Bytes bytes{{file_.data, file_.data.get() + member.data_offset}, member.size};
  if (member.deflated) {
    auto data = allocate(member.size, where_ + ": " + name);
    bool overrun = false;
    const bool complete = Inflater().run(packed, {data.get(), member.size}, overrun);
    if (overrun)
      throw Error(ErrorCode::zip_bomb, {.where = where_,
                                        .got = name + " that expands to more than it says",
                                        .needed = std::to_string(member.size) + " bytes"});
    if (!complete) damaged(name + " whose packed data are damaged", std::to_string(member.size) + " bytes");
    bytes.data = std::move(data);
  }
  if (crc_of(bytes.span()) != member.crc) damaged(name + " with another checksum than it had", "the same CRC-32");
  return bytes;
}

}  // namespace tmaops::io
