#include "io/compression.hpp"

#include "io/recording.hpp"
#include "offers/output_file.hpp"
#include "support/expect_error.hpp"
#include "support/npy_bytes.hpp"
#include "support/scratch.hpp"

namespace tmaops::io {
namespace {

using test::bytes_of;
using test::expect_error;
using test::Scratch;

#ifdef TMAOPS_HAVE_ZSTD
constexpr bool kHasZstd = true;
#else
constexpr bool kHasZstd = false;
#endif

std::vector<Compression> kinds() {
  std::vector<Compression> all{Compression::gzip};
  if (kHasZstd) all.push_back(Compression::zstd);
  return all;
}

std::string packed(Compression kind, std::string_view text) {
  std::string all;
  Compressor compressor(kind, [&](std::string_view piece) { all += piece; });
  while (!text.empty()) {
    compressor.write(text.substr(0, 1000));
    text.remove_prefix(std::min<std::size_t>(text.size(), 1000));
  }
  compressor.finish();
  return all;
}

std::string unpacked(Compression kind, const std::string& bytes, const ExpansionLimit& limit = {}) {
  return std::string(decompress(bytes_of(bytes), kind, "a.gz", limit).text());
}

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(i * 7919 % 10007) + ",";
  return text;
}

TEST(Compression, text_comes_back_whole_and_the_same_text_gives_the_same_bytes) {
  for (const Compression kind : kinds())
    for (const std::string& text : {std::string(), std::string("a"), numbers(200'000)}) {
      const std::string bytes = packed(kind, text);
      EXPECT_EQ(unpacked(kind, bytes), text);
      EXPECT_EQ(bytes, packed(kind, text));
      EXPECT_EQ(detect_compression(bytes), kind);
    }
}

TEST(Compression, files_of_several_members_are_read_to_the_end) {
  for (const Compression kind : kinds())
    EXPECT_EQ(unpacked(kind, packed(kind, "t,x\n") + packed(kind, "") + packed(kind, "0,1\n")), "t,x\n0,1\n");
}

TEST(Compression, damaged_and_cut_files_are_refused) {
  for (const Compression kind : kinds()) {
    const std::string good = packed(kind, numbers(3000));
    for (std::size_t length = 4; length < good.size(); length += 1 + good.size() / 97)
      expect_error(ErrorCode::bad_archive, [&] { unpacked(kind, good.substr(0, length)); });
    std::string bad = good;
    bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 0x55);
    expect_error(ErrorCode::bad_archive, [&] { unpacked(kind, bad); });
    expect_error(ErrorCode::bad_archive, [&] { unpacked(kind, good + "more text"); });
    expect_error(ErrorCode::bad_format, [&] { unpacked(kind, "t,x\n0,1\n"); }, "plain text");
    expect_error(ErrorCode::bad_format, [&] { unpacked(kind, ""); });
  }
}

TEST(Compression, expansion_is_bounded) {
  for (const Compression kind : kinds()) {
    const std::string bomb = packed(kind, std::string(8 << 20, '0'));
    expect_error(
        ErrorCode::zip_bomb, [&] { unpacked(kind, bomb, {.believed_bytes = 1 << 20}); }, "200 : 1", "--trust-sizes");
    EXPECT_EQ(unpacked(kind, bomb, {.largest_ratio = 1 << 20, .believed_bytes = 0}).size(), std::size_t{8} << 20);
  }
}

TEST(Compression, a_name_says_it_and_the_rest_of_the_name_is_the_format) {
  EXPECT_EQ(file_format_of("a/b.csv.gz", "--from"), FileFormat::csv);
  EXPECT_EQ(file_format_of("b.TSV.GZ", "--from"), FileFormat::csv);
  EXPECT_EQ(file_format_of("b.txt.zst", "--from"), FileFormat::tum);
  EXPECT_EQ(file_format_of("b.tum.gz", "--from"), FileFormat::tum);
  expect_error(ErrorCode::usage, [] { file_format_of("b.npz.gz", "--from"); }, "text only");
  expect_error(ErrorCode::usage, [] { file_format_of("b.gz", "--from"); }, "--from");
  expect_error(ErrorCode::usage, [] { file_format_of("-", "--to"); }, "--to", "./-");
}

TEST(Compression, recordings_are_read_and_written) {
  const Scratch folder;
  const Recording recording = read_recording(folder.file("a.csv", "t,x\n0,1.5\n1,2.5\n"));
  for (const char* name : {"b.csv.gz", "b.tsv.gz", "b.csv.zst"}) {
    if (!kHasZstd && std::string_view(name).ends_with("zst")) continue;
    OutputFile file(folder / name);
    write_recording(file, recording, FileFormat::csv);
    file.commit();
    EXPECT_NE(detect_compression(test::read_all(folder / name)), Compression::none) << name;
    const Recording back = read_recording(folder / name);
    EXPECT_EQ(back.times, recording.times) << name;
    EXPECT_EQ(back.columns.at(0).name, "x") << name;
  }
  expect_error(
      ErrorCode::bad_format, [&] { read_recording(folder.file("c.csv", packed(Compression::gzip, "t,x\n0,1\n"))); },
      "gzip", "zcat", ".gz");
  expect_error(
      ErrorCode::usage, [&] { read_recording(folder.file("c.npz.gz", "x"), {.format = FileFormat::npz}); },
      "text only");
}

}  // namespace
}  // namespace tmaops::io
