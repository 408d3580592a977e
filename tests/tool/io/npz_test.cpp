#include "io/npz.hpp"

#include "support/expect_error.hpp"
#include "support/npy_bytes.hpp"
#include "support/scratch.hpp"
#include "tmaops/dtype.hpp"

namespace tmaops::io {
namespace {

using test::bytes_of;
using test::expect_error;
using test::npy;
using test::raw;
using test::zip;
using test::ZipPart;

NpzReader open(const std::string& file, ZipLimits limits = {}) { return {bytes_of(file), "a.npz", limits}; }
void read_all_arrays(const std::string& file, ZipLimits limits = {}) {
  const NpzReader npz = open(file, limits);
  for (const std::string& name : npz.names()) npz.read(name);
}
const std::string kArray = npy("<f8", "(2,)", raw<double>({1, 2}));

TEST(Npz, reads_stored_deflated_zip64_and_streamed_members) {
  for (const bool deflate : {false, true})
    for (const int kind : {0, 1, 2}) {
      ZipPart part = ZipPart::make("x.npy", kArray, deflate);
      part.zip64 = kind == 1;
      part.streamed = kind == 2;
      const NpzReader npz = open(zip({part, ZipPart::make("readme.txt", "hello")}));
      EXPECT_EQ(npz.names(), std::vector<std::string>{"x"});
      EXPECT_EQ(element_f64(npz.read("x"), 1), 2) << deflate << kind;
    }
  EXPECT_TRUE(open(zip({})).names().empty());
}

TEST(Npz, writes_archives_it_reads_with_and_without_compression) {
  const test::Scratch folder;
  std::vector<double> values(10'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 7);
  for (const bool deflate : {false, true}) {
    const auto path = folder / (deflate ? "small.npz" : "large.npz");
    OutputFile file(path);
    NpzWriter npz(file, deflate);
    npz.add("values", make_array(values, {5'000, 2}));
    npz.add("names", make_text_array(std::vector<std::string_view>{"pick", "pl\u00e4ce"}));
    npz.finish();
    file.commit();
    const NpzReader back(path);
    EXPECT_EQ(back.names(), (std::vector<std::string>{"values", "names"}));
    EXPECT_EQ(back.read("values").shape, (std::vector<std::int64_t>{5'000, 2}));
    EXPECT_EQ(element_f64(back.read("values"), 9'999), 9'999 % 7);
    EXPECT_EQ(element_text(back.read("names"), 1), "pl\u00e4ce");
  }
  EXPECT_LT(std::filesystem::file_size(folder / "small.npz"), 5'000U);
  EXPECT_GT(std::filesystem::file_size(folder / "large.npz"), 80'000U);
}

TEST(Npz, bfloat16_keeps_its_name) {
  const std::string bits = npy("<u2", "(1,)", raw<std::uint16_t>({tmaops::bfloat16(-2.5F).bits}));
  const NpzReader npz = open(zip({ZipPart::make("pose.bf16.npy", bits), ZipPart::make("count.npy", bits)}));
  EXPECT_EQ(element_f64(npz.read("pose.bf16"), 0), -2.5);
  EXPECT_EQ(npz.read("count").type.kind, ElementKind::integer);
}

TEST(Npz, a_missing_array_lists_those_there_are) {
  const NpzReader npz = open(zip({ZipPart::make("x.npy", kArray), ZipPart::make("y.npy", kArray)}));
  expect_error(ErrorCode::array_missing, [&] { npz.read("z"); }, "'z'", "x, y");
}

TEST(Npz, every_cut_off_archive_is_refused) {
  const std::string good = zip({ZipPart::make("x.npy", kArray, true), ZipPart::make("y.npy", kArray)});
  expect_error(ErrorCode::bad_format, [&] { read_all_arrays(""); }, "empty");
  for (std::size_t length = 1; length < good.size(); ++length)
    expect_error(ErrorCode::bad_format, [&] { read_all_arrays(good.substr(0, length)); });
  expect_error(ErrorCode::bad_format, [&] { read_all_arrays(kArray); }, "no zip archive");
}

TEST(Npz, a_changed_byte_is_noticed) {
  const std::string good = zip({ZipPart::make("x.npy", kArray, true), ZipPart::make("y.npy", kArray)});
  const std::size_t directory = good.find("PK\x01\x02");
  int silent = 0;
  for (std::size_t i = 0; i < directory; ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x11);
    try {
      read_all_arrays(bad);
      ++silent;
    } catch (const Error&) {
    }
  }
  // The version needed, time, date and unused flags of a local header are not checked.
  EXPECT_LE(silent, 2 * 8);
}

TEST(Npz, a_wrong_checksum_or_size_is_refused) {
  ZipPart part = ZipPart::make("x.npy", kArray, true);
  part.crc ^= 1;
  expect_error(ErrorCode::bad_archive, [&] { read_all_arrays(zip({part})); }, "checksum");
  for (const int off : {-1, 1}) {
    part = ZipPart::make("x.npy", kArray, true);
    part.size += static_cast<std::uint64_t>(off);
    expect_error(
        off < 0 ? ErrorCode::zip_bomb : ErrorCode::bad_archive, [&] { read_all_arrays(zip({part})); }, "'x.npy'");
  }
  part = ZipPart::make("x.npy", kArray);
  part.size = 3;
  expect_error(ErrorCode::bad_archive, [&] { read_all_arrays(zip({part})); });
  part = ZipPart::make("x.npy", kArray);
  part.method = 12;
  expect_error(ErrorCode::bad_archive, [&] { read_all_arrays(zip({part})); }, "method 12");
  part = ZipPart::make("x.npy", kArray);
  part.flags = 1;
  expect_error(ErrorCode::bad_archive, [&] { read_all_arrays(zip({part})); }, "encrypted");
}

TEST(Npz, refuses_escaping_absolute_and_double_names) {
  for (const char* name : {"../x.npy", "a/../../x.npy", "/etc/x.npy", "C:x.npy", "a\\x.npy", "..", "a/.."})
    expect_error(ErrorCode::bad_member_name, [&] { open(zip({ZipPart::make(name, kArray)})); }, "a.npz");
  expect_error(ErrorCode::bad_member_name, [&] { open(zip({ZipPart::make(std::string("x\0.npy", 6), kArray)})); });
  expect_error(ErrorCode::bad_member_name, [&] { open(zip({ZipPart::make("", kArray)})); });
  expect_error(
      ErrorCode::bad_member_name, [&] { open(zip({ZipPart::make("x.npy", kArray), ZipPart::make("x.npy", kArray)})); },
      "two members");
  EXPECT_EQ(open(zip({ZipPart::make("a/x..y.npy", kArray)})).names()[0], "a/x..y");
}

TEST(Npz, refuses_bombs) {
  const std::string zeros(1 << 20, '\0');
  ZipPart bomb = ZipPart::make("x.npy", zeros, true);
  EXPECT_NO_THROW(open(zip({bomb})));  // a small member may expand as far as deflate goes
  expect_error(ErrorCode::zip_bomb, [&] { open(zip({bomb}), {.believed_bytes = 1000}); }, "200 : 1");
  expect_error(ErrorCode::zip_bomb, [&] { open(zip({bomb}), {.largest_member = 1000}); }, "at most 1000");
  bomb.size = 1ULL << 31;  // claims 2 GiB
  expect_error(ErrorCode::zip_bomb, [&] { open(zip({bomb})); }, "expand to 2147483648", "--trust-sizes");
  bomb.size = 1000;  // and one that claims less than it expands to
  expect_error(ErrorCode::zip_bomb, [&] { read_all_arrays(zip({bomb})); }, "more than it says");
}

TEST(Npz, the_limit_on_expansion_is_one_for_all_members) {
  const std::string zeros(1 << 20, '\0');
  std::vector<ZipPart> parts;
  for (int i = 0; i < 20; ++i) parts.push_back(ZipPart::make("x" + std::to_string(i) + ".npy", zeros, true));
  EXPECT_NO_THROW(open(zip({parts[0]}), {.believed_bytes = 1 << 20}));
  expect_error(ErrorCode::zip_bomb, [&] { open(zip(parts), {.believed_bytes = 1 << 20}); }, "'x0.npy'", "20971520");
  EXPECT_NO_THROW(open(zip(parts), ZipLimits::trusting()));
  const std::string noise = raw<std::uint64_t>(std::vector<std::uint64_t>(1 << 14, 0x123456789abcdef));
  parts.push_back(ZipPart::make("stored.npy", noise));  // the limit grows with the file
  EXPECT_NO_THROW(open(zip(parts), {.believed_bytes = 1 << 20}));
}

TEST(Npz, refuses_what_numpy_refuses) {
  const auto with = [&](std::size_t offset, char value) {
    std::string file = zip({ZipPart::make("x.npy", kArray)});
    file[file.find("PK\x01\x02") + offset] = value;
    return file;
  };
  EXPECT_NO_THROW(open(with(6, 63)));
  expect_error(ErrorCode::bad_archive, [&] { open(with(6, static_cast<char>(128))); }, "version 12.8");
  expect_error(ErrorCode::bad_archive, [&] { open(with(8, 0x20)); }, "patch");
  expect_error(ErrorCode::bad_archive, [&] { open(with(8, 0x40)); }, "encrypted");
}

TEST(Npz, texts_of_different_lengths_become_one_array_of_the_longest) {
  const test::Scratch folder;
  const std::vector<std::string_view> texts{"", "pick", "pl\u00e4ce", "bad \xff byte"};
  for (const bool deflate : {false, true}) {
    OutputFile file(folder / "a.npz", {.force = true});
    NpzWriter npz(file, deflate);
    const Array array = make_text_array(texts);
    const std::vector<std::int64_t> rows{3, -1, 2, 1, 0};
    npz.add("x", take_rows(array, rows, "x"));
    npz.finish();
    file.commit();
    const Array back = NpzReader(folder / "a.npz").read("x");
    EXPECT_EQ(back.text(), "(5,) <U10");
    std::vector<std::string> read;
    for (std::int64_t i = 0; i < back.size(); ++i) read.push_back(element_text(back, i));
    EXPECT_EQ(read, (std::vector<std::string>{"bad \xef\xbf\xbd byte", "", "pl\u00e4ce", "pick", ""}));
  }
}

TEST(Npz, refuses_members_that_share_bytes) {
  std::string file = zip({ZipPart::make("x.npy", kArray), ZipPart::make("x.npx", kArray)});
  // Let the second directory entry point to the first member's data, as overlapping bombs do.
  const std::size_t second = file.rfind("PK\x01\x02");
  file.replace(second + 42, 4, test::little(0, 4));
  file.replace(second + 46, 5, "x.npy");
  expect_error(ErrorCode::bad_member_name, [&] { open(file); });
  file.replace(second + 46, 5, "x.npx");
  expect_error(ErrorCode::bad_archive, [&] { open(file); }, "local header");
}

TEST(Npz, refuses_bytes_before_or_between_the_records) {
  const std::string good = zip({ZipPart::make("x.npy", kArray)});
  expect_error(ErrorCode::bad_archive, [&] { open("#!/bin/sh\n" + good); });
  std::string shifted = good;
  shifted.insert(shifted.find("PK\x05\x06"), "x");
  expect_error(ErrorCode::bad_archive, [&] { open(shifted); });
}

}  // namespace
}  // namespace tmaops::io
