#include "io/compression.hpp"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "core/fail.hpp"
#include "core/spelling.hpp"
#ifdef TMAOPS_HAVE_ZSTD
#include <zstd.h>
#endif

namespace tmaops::io {
namespace {

constexpr std::size_t kPackedPiece = std::size_t{1} << 18;
constexpr int kGzip = MAX_WBITS + 16;  // zlib's way to ask for a gzip wrapper
constexpr int kRawDeflate = -MAX_WBITS;
constexpr std::size_t kZlibStep = std::size_t{1} << 30;  // zlib counts in 32 bits
constexpr int kZstdLevel = 3;
constexpr int kZstdLongestWindow = 27;  // 128 MiB, the default limit of the zstd program

[[noreturn]] void damaged(const std::string& where, std::string got) {
  fail(ErrorCode::bad_archive, where, got, "a whole compressed file",
       "Make the file again, or copy it again if it was cut off.");
}

// Collects expanded bytes within the limit.
class Expanded {
 public:
  Expanded(std::uint64_t packed, const std::string& where, const ExpansionLimit& limit)
      : where_(where), most_(limit.believed_bytes + limit.largest_ratio * packed), limit_(limit) {}

  void append(const char* bytes, std::size_t count) {
    if (text_.size() + count > most_)
      fail(ErrorCode::zip_bomb, where_, "compressed text that expands to more than " + std::to_string(most_) + " bytes",
           "at most " + std::to_string(limit_.largest_ratio) + " : 1 beyond " + std::to_string(limit_.believed_bytes) +
               " bytes",
           "If the data is honest, pass --trust-sizes, or decompress the file first.");
    try {
      text_.append(bytes, count);
    } catch (const std::bad_alloc&) {
      fail(ErrorCode::out_of_memory, where_, std::to_string(text_.size() + count) + " bytes of text", "memory");
    }
  }
  Bytes bytes() && {
    auto text = std::make_shared<std::string>(std::move(text_));
    return {std::shared_ptr<const std::byte[]>(text, reinterpret_cast<const std::byte*>(text->data())), text->size()};
  }

 private:
  const std::string& where_;
  std::uint64_t most_;
  ExpansionLimit limit_;
  std::string text_;
};

Bytes gunzip(const Bytes& packed, const std::string& where, const ExpansionLimit& limit) {
  z_stream zlib{};
  if (inflateInit2(&zlib, kGzip) != Z_OK) fail(ErrorCode::out_of_memory, where, "no zlib stream", "memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ended(&zlib, inflateEnd);
  Expanded all(packed.size, where, limit);
  std::vector<char> piece(kPackedPiece);
  std::span<const std::byte> rest = packed.span();
  int status = Z_STREAM_END;  // between two members
  bool full = false;          // the last piece was full, so the stream may hold more
  while (full || zlib.avail_in != 0 || !rest.empty()) {
    if (zlib.avail_in == 0 && !rest.empty()) {
      const std::size_t step = std::min(rest.size(), kZlibStep);
      zlib.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest.data()));  // zlib only reads it
      zlib.avail_in = static_cast<uInt>(step);
      rest = rest.subspan(step);
    }
    if (status == Z_STREAM_END) inflateReset(&zlib);  // the next member
    zlib.next_out = reinterpret_cast<Bytef*>(piece.data());
    zlib.avail_out = static_cast<uInt>(piece.size());
    status = inflate(&zlib, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      damaged(where, std::string("damaged gzip data: ") + (zlib.msg != nullptr ? zlib.msg : "not as gzip writes them"));
    all.append(piece.data(), piece.size() - zlib.avail_out);
    full = status == Z_OK && zlib.avail_out == 0;
  }
  if (status != Z_STREAM_END) damaged(where, "a gzip file that is cut off");
  return std::move(all).bytes();
}

#ifdef TMAOPS_HAVE_ZSTD
Bytes unzstd(const Bytes& packed, const std::string& where, const ExpansionLimit& limit) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!context) fail(ErrorCode::out_of_memory, where, "no zstd stream", "memory");
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kZstdLongestWindow);
  Expanded all(packed.size, where, limit);
  std::vector<char> piece(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{packed.data.get(), packed.size, 0};
  std::size_t left = 1;  // 0: at the end of a frame
  bool progress = true;  // without progress and without input the stream holds nothing more
  while (in.pos < in.size || (left != 0 && progress)) {
    const std::size_t before = in.pos;
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left) != 0) damaged(where, std::string("damaged zstd data: ") + ZSTD_getErrorName(left));
    all.append(piece.data(), out.pos);
    progress = out.pos != 0 || in.pos != before;
  }
  if (left != 0) damaged(where, "a zstd file that is cut off");
  return std::move(all).bytes();
}
#else
[[noreturn]] void fail_without_zstd(const std::string& where) {
  fail(ErrorCode::bad_format, where, "zstd, and tmaops was built without it", "gzip or plain text",
       std::string("zstd needs libzstd: ") + TMAOPS_HOW_ZSTD + ".");
}
Bytes unzstd(const Bytes&, const std::string& where, const ExpansionLimit&) { fail_without_zstd(where); }
#endif

}  // namespace

Compression compression_of(const std::filesystem::path& path) {
  const std::string extension = lower_case(path.extension().native());
  return extension == ".gz" ? Compression::gzip : extension == ".zst" ? Compression::zstd : Compression::none;
}

std::filesystem::path without_compression(const std::filesystem::path& path) {
  if (compression_of(path) == Compression::none) return path;
  std::filesystem::path inner = path;
  return inner.replace_extension();
}

Compression detect_compression(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("\x1f\x8b"sv)) return Compression::gzip;
  if (bytes.starts_with("\x28\xb5\x2f\xfd"sv)) return Compression::zstd;
  return Compression::none;
}

Bytes decompress(const Bytes& packed, Compression compression, const std::string& where, const ExpansionLimit& limit) {
  if (compression == Compression::none) return packed;
  if (packed.size == 0) fail(ErrorCode::bad_format, where, "an empty file", "compressed text");
  if (detect_compression(packed.text()) != compression && packed.size > 3)
    fail(ErrorCode::bad_format, where,
         "other first bytes than those of " + std::string(compression == Compression::gzip ? "gzip" : "zstd"),
         "compressed data, as the extension says", "If the file is plain text, give it a name without that extension.");
  return compression == Compression::gzip ? gunzip(packed, where, limit) : unzstd(packed, where, limit);
}

struct Compressor::State {
  State(Compression kind, Take to) : compression(kind), take(std::move(to)), piece(kPackedPiece) {
    if (uses_zlib()) {
      // The header of gzip gets no time and no name: the same text gives the same bytes.
      const int wrapper = kind == Compression::gzip ? kGzip : kRawDeflate;
      if (deflateInit2(&zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, wrapper, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        fail(ErrorCode::out_of_memory, "zlib", "no stream", "256 KiB of memory");
    } else if (kind == Compression::zstd) {
#ifdef TMAOPS_HAVE_ZSTD
      zstd.reset(ZSTD_createCCtx());
      if (!zstd) fail(ErrorCode::out_of_memory, "zstd", "no stream", "memory");
      ZSTD_CCtx_setParameter(zstd.get(), ZSTD_c_compressionLevel, kZstdLevel);
      ZSTD_CCtx_setParameter(zstd.get(), ZSTD_c_checksumFlag, 1);
#else
      fail_without_zstd("output");
#endif
    }
  }
  ~State() {
    if (uses_zlib()) deflateEnd(&zlib);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  bool uses_zlib() const { return compression == Compression::gzip || compression == Compression::deflate; }

  void deflate_all(std::string_view text, int flush) {
    do {
      const std::size_t step = std::min(text.size(), kZlibStep);
      zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib only reads it
      zlib.avail_in = static_cast<uInt>(step);
      text.remove_prefix(step);
      do {
        zlib.next_out = reinterpret_cast<Bytef*>(piece.data());
        zlib.avail_out = static_cast<uInt>(piece.size());
        deflate(&zlib, flush);
        take({piece.data(), piece.size() - zlib.avail_out});
      } while (zlib.avail_out == 0);
    } while (!text.empty());
  }
#ifdef TMAOPS_HAVE_ZSTD
  void zstd_all(std::string_view text, ZSTD_EndDirective end) {
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    std::size_t left = 0;
    do {
      ZSTD_outBuffer out{piece.data(), piece.size(), 0};
      left = ZSTD_compressStream2(zstd.get(), &out, &in, end);
      if (ZSTD_isError(left) != 0) fail(ErrorCode::internal, "zstd", ZSTD_getErrorName(left), "compression");
      take({piece.data(), out.pos});
    } while (in.pos < in.size || (end == ZSTD_e_end && left != 0));
  }
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> zstd{nullptr, ZSTD_freeCCtx};
#endif

  Compression compression;
  Take take;
  std::vector<char> piece;
  z_stream zlib{};
};

Compressor::Compressor(Compression compression, Take take)
    : state_(std::make_unique<State>(compression, std::move(take))) {}
Compressor::~Compressor() = default;

void Compressor::write(std::string_view text) {
  if (state_->compression == Compression::none) return state_->take(text);
  if (state_->uses_zlib()) return state_->deflate_all(text, Z_NO_FLUSH);
#ifdef TMAOPS_HAVE_ZSTD
  state_->zstd_all(text, ZSTD_e_continue);
#endif
}

void Compressor::finish() {
  if (state_->uses_zlib()) state_->deflate_all({}, Z_FINISH);
#ifdef TMAOPS_HAVE_ZSTD
  if (state_->compression == Compression::zstd) state_->zstd_all({}, ZSTD_e_end);
#endif
}

}  // namespace tmaops::io
