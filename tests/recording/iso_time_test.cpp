#include "recording/iso_time.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace tmaops::recording {
namespace {

std::int64_t parsed(const char* text) {
  std::int64_t time = -1;
  IsoStyle style;
  EXPECT_EQ(parse_iso_time(text, time, style), ParseResult::good) << text;
  return time;
}

TEST(IsoTime, is_exact_to_the_nanosecond_in_any_zone) {
  constexpr std::int64_t kNoon = 1'714'564'800'000'000'000;  // 2024-05-01T12:00:00Z
  EXPECT_EQ(parsed("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(parsed("2024-05-01T12:00:00Z"), kNoon);
  EXPECT_EQ(parsed("2024-05-01 12:00"), kNoon);
  EXPECT_EQ(parsed("2024-05-01T12:00:00.123456789Z"), kNoon + 123'456'789);
  EXPECT_EQ(parsed("2024-05-01T12:00:00,5Z"), kNoon + 500'000'000);
  EXPECT_EQ(parsed("2024-05-01T12:00:00.9999999996Z"), kNoon + 1'000'000'000);
  for (const char* zoned : {"2024-05-01T14:00:00+02:00", "2024-05-01T14:00:00+0200", "2024-05-01T14:00:00 +02",
                            "2024-05-01T06:30:00-05:30", "2024-05-01t12:00:00z"})
    EXPECT_EQ(parsed(zoned), kNoon) << zoned;
  EXPECT_EQ(parsed("1969-12-31T23:59:59.999999999Z"), -1);
  EXPECT_EQ(parsed("2000-02-29T00:00:00Z"), 951'782'400'000'000'000);
}

TEST(IsoTime, refuses_what_is_no_time) {
  for (const char* text :
       {"", "2024", "2024-05-01", "2024-13-01T00:00:00Z", "2023-02-29T00:00:00Z", "2024-05-01T24:00:00Z",
        "2024-05-01T12", "2024-05-01T12:60:00Z", "2024-05-01T12:00:60Z", "2024-05-01T12:00:00.Z",
        "2024-05-01T12:00:00Q", "2024-05-01T12:00:00+25:00", "24-05-01T12:00:00Z", "2024-05-01T12:00:00Zx"}) {
    std::int64_t time = 0;
    IsoStyle style;
    EXPECT_EQ(parse_iso_time(text, time, style), ParseResult::not_a_number) << text;
  }
  std::int64_t time = 0;
  IsoStyle style;
  EXPECT_EQ(parse_iso_time("2300-01-01T00:00:00Z", time, style), ParseResult::out_of_range);
  EXPECT_EQ(parse_iso_time("1600-01-01T00:00:00Z", time, style), ParseResult::out_of_range);
}

TEST(IsoTime, every_time_is_written_as_it_is_read) {
  std::mt19937_64 random(7);
  for (const IsoStyle& style : {IsoStyle{'T', "Z"}, IsoStyle{' ', ""}, IsoStyle{'T', "-09:30"}})
    for (int i = 0; i < 3000; ++i) {
      std::int64_t time = static_cast<std::int64_t>(random());
      if (i == 0) time = std::numeric_limits<std::int64_t>::min();
      if (i == 1) time = std::numeric_limits<std::int64_t>::max();
      const std::string text = iso_time_text(time, style, 9);
      std::int64_t back = 0;
      IsoStyle read;
      ASSERT_EQ(parse_iso_time(text, back, read), ParseResult::good) << text;
      EXPECT_EQ(back, time) << text;
      EXPECT_EQ(read.zone, style.zone);
      EXPECT_EQ(read.separator, style.separator);
    }
  EXPECT_EQ(iso_time_text(-1, {}, 0), "1969-12-31T23:59:59Z");
}

}  // namespace
}  // namespace tmaops::recording
