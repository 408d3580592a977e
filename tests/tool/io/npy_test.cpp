#include "io/npy.hpp"

#include "offers/output_file.hpp"
#include "support/expect_error.hpp"
#include "support/npy_bytes.hpp"
#include "support/scratch.hpp"
#include "tmaops/dtype.hpp"

namespace tmaops::io {
namespace {

using test::bytes_of;
using test::expect_error;
using test::npy;
using test::npy_prefix;
using test::raw;

Array parse_file(const std::string& file) { return parse_npy(bytes_of(file), "a.npy", "a"); }

TEST(Npy, reads_every_numeric_type) {
  const auto first = [](const std::string& file) { return element_f64(parse_file(file), 0); };
  EXPECT_EQ(first(npy("<f8", "(1,)", raw<double>({0.1}))), 0.1);
  EXPECT_EQ(first(npy("<f4", "(1,)", raw<float>({0.5F}))), 0.5);
  EXPECT_EQ(first(npy("<f2", "(1,)", std::string("\x00\x3e", 2))), 1.5);
  EXPECT_EQ(first(npy("|i1", "(1,)", "\xff")), -1);
  EXPECT_EQ(first(npy("|u1", "(1,)", "\xff")), 255);
  EXPECT_EQ(first(npy("<i2", "(1,)", raw<std::int16_t>({-2}))), -2);
  EXPECT_EQ(first(npy("<u2", "(1,)", raw<std::uint16_t>({65535}))), 65535);
  EXPECT_EQ(first(npy("<i4", "(1,)", raw<std::int32_t>({-3}))), -3);
  EXPECT_EQ(first(npy("<u4", "(1,)", raw<std::uint32_t>({4000000000U}))), 4e9);
  EXPECT_EQ(first(npy("<i8", "(1,)", raw<std::int64_t>({-4}))), -4);
  EXPECT_EQ(first(npy("<u8", "(1,)", raw<std::uint64_t>({1ULL << 63}))), 0x1p63);
  EXPECT_EQ(element_i64(parse_file(npy("<u8", "(1,)", raw<std::uint64_t>({1ULL << 63}))), 0), std::nullopt);
  EXPECT_EQ(first(npy("|b1", "(1,)", "\x01")), 1);
  EXPECT_EQ(element_text(parse_file(npy("|S3", "(1,)", std::string("ab\0", 3))), 0), "ab");
  EXPECT_EQ(element_text(parse_file(npy("<U2", "(1,)", raw<char32_t>({U'\u00e9', 0}))), 0), "\u00e9");
}

TEST(Npy, reads_versions_shapes_and_both_orders) {
  const std::string data = raw<std::int32_t>({0, 1, 2, 3, 4, 5});
  for (const int version : {1, 2, 3}) {
    const Array array = parse_file(npy("<i4", "(2, 3)", data, false, version));
    EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(element_f64(array, 1), 1);
  }
  const Array fortran = parse_file(npy("<i4", "(2, 3)", data, true));
  const std::int32_t row_major[] = {0, 2, 4, 1, 3, 5};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(element_f64(fortran, i), row_major[i]) << i;
  EXPECT_EQ(parse_file(npy("<i4", "()", raw<std::int32_t>({7}))).size(), 1);
  EXPECT_EQ(parse_file(npy("<i4", "(0, 3)", "")).size(), 0);
  EXPECT_EQ(parse_file(npy("<i4", "(3L, 2L)", data)).shape.size(), 2U);
  EXPECT_EQ(parse_file(npy_prefix("{\"shape\": (6,), \"fortran_order\": False, \"descr\": \"<i4\"}") + data).size(), 6);
}

TEST(Npy, writes_what_it_reads_and_pads_as_numpy_does) {
  const test::Scratch folder;
  const Array array = make_array(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3});
  OutputFile file(folder / "a.npy");
  file.write(npy_header(array));
  file.write(array.span());
  file.commit();
  const Array back = parse_npy(read_file(folder / "a.npy"), "a.npy", "a");
  EXPECT_EQ(back.shape, array.shape);
  EXPECT_EQ(element_f64(back, 5), 6);
  EXPECT_EQ(npy_header(array).size() % 64, 0U);
  EXPECT_NE(npy_header(make_array(std::vector<double>{}, {0})).find("(0,)"), std::string::npos);
}

TEST(Npy, bfloat16_is_u2_under_a_name_that_says_so) {
  const std::string file = npy("<u2", "(1,)", raw<std::uint16_t>({tmaops::bfloat16(1.5F).bits}));
  EXPECT_EQ(element_f64(parse_npy(bytes_of(file), "x.bf16.npy", "x.bf16"), 0), 1.5);
  EXPECT_EQ(element_f64(parse_npy(bytes_of(file), "x.npy", "x"), 0), 0x3fc0);
}

TEST(Npy, refuses_what_is_cut_off_or_something_else) {
  const std::string good = npy("<f8", "(2,)", raw<double>({1, 2}));
  expect_error(ErrorCode::bad_format, [&] { parse_file(""); }, "a.npy", "empty");
  for (std::size_t length = 1; length < good.size(); ++length) {
    try {
      parse_file(good.substr(0, length));
      ADD_FAILURE() << "read " << length << " of " << good.size() << " bytes";
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::bad_format || error.code() == ErrorCode::file_too_large) << error.what();
    }
  }
  expect_error(ErrorCode::bad_format, [&] { parse_file("PK\x03\x04 not an array"); });
  expect_error(
      ErrorCode::bad_format, [&] { parse_file(npy("<f8", "(2,)", raw<double>({1, 2}), false, 4)); }, "version 4.0");
  expect_error(ErrorCode::file_too_large, [&] { parse_file(good + "x"); }, "17 bytes of data");
}

TEST(Npy, refuses_lying_and_oversized_headers) {
  const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }";
  expect_error(
      ErrorCode::bad_npy_header, [&] { parse_file(npy_prefix(header + std::string(10'000, ' '), 2)); }, "10057");
  expect_error(ErrorCode::bad_npy_header, [&] { parse_file(npy_prefix(header, 2, 0xffffffff)); });
  expect_error(ErrorCode::file_too_large, [&] { parse_file(npy_prefix(header, 2, 9'000)); }, "9000 bytes");
  const auto array = parse_file(npy_prefix(header + std::string(9'000, ' '), 2) + raw<double>({3}));
  EXPECT_EQ(element_f64(array, 0), 3);
}

TEST(Npy, refuses_headers_that_are_not_the_dictionary) {
  for (const char* header :
       {"", "[]", "{", "{}", "import os", "{'descr': '<f8'}", "{'descr': '<f8', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "{'descr': '<f8', 'fortran_order': 0, 'shape': ()}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (), 'x': 1}", "{'descr': <f8}",
        "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ()} + 1",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "{'descr': '<f\\x38'"})
    expect_error(ErrorCode::bad_npy_header, [&] { parse_file(npy_prefix(header)); }, "a.npy");
}

TEST(Npy, reads_datetime64_in_the_units_of_a_clock) {
  const Array times = parse_file(npy("<M8[us]", "(2,)", raw<std::int64_t>({-5, kNotATime})));
  EXPECT_EQ(times.type.kind, ElementKind::time);
  EXPECT_EQ(element_i64(times, 0), -5);
  EXPECT_EQ(element_i64(times, 1), kNotATime);
  const Array none = take_rows(times, std::vector<std::int64_t>{-1}, "x");
  EXPECT_EQ(element_i64(none, 0), kNotATime) << "a time that is not there is no time, and not 1970";
  expect_error(
      ErrorCode::unsupported_file_dtype, [&] { parse_file(npy("<M8[D]", "(1,)", raw<std::int64_t>({1}))); },
      "astype('datetime64[ns]')");
}

TEST(Npy, refuses_pickles_and_types_it_does_not_read) {
  for (const char* descr : {"O", "|O", "|O8"})
    expect_error(ErrorCode::pickle_refused, [&] { parse_file(npy(descr, "(1,)", "xxxxxxxx")); }, descr);
  for (const char* descr :
       {">f8", ">i4", "<c16", "<f16", "<M8[m]", "<m8[ns]", "|V2", "<U0", "<U99999999999999999999", "<i3", "f8"})
    expect_error(ErrorCode::unsupported_file_dtype, [&] { parse_file(npy(descr, "(1,)", "xxxxxxxxxxxxxxxx")); }, descr);
  expect_error(
      ErrorCode::unsupported_file_dtype,
      [&] { parse_file(npy_prefix("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}")); },
      "structured");
  expect_error(ErrorCode::unsupported_file_dtype, [&] { parse_file(npy(">f8", "(1,)", "xxxxxxxx")); }, "big-endian");
}

TEST(Npy, refuses_shapes_that_overflow) {
  for (const char* shape : {"(9223372036854775807,)", "(4294967296, 4294967296)", "(99999999999999999999,)",
                            "(3037000500, 3037000500)", "(0, 9223372036854775807)", "(1152921504606846976, 8)"})
    expect_error(ErrorCode::file_too_large, [&] { parse_file(npy("<f8", shape, "")); }, "a.npy");
  expect_error(ErrorCode::file_too_large, [&] { parse_file(npy("<f8", "(1152921504606846975,)", "")); });
}

TEST(Npy, reading_what_is_no_file_is_an_error) {
  const test::Scratch folder;
  expect_error(ErrorCode::cannot_read, [&] { read_file(folder / "missing.npy"); }, "No such file");
  expect_error(ErrorCode::cannot_read, [&] { read_file(folder.path()); }, "directory");
  expect_error(ErrorCode::cannot_read, [&] { read_file("/dev/zero"); }, "device");
  expect_error(ErrorCode::cannot_read, [&] { read_file(std::string(5'000, 'x')); }, "too long");
}

}  // namespace
}  // namespace tmaops::io
