#include "cli/tile_picture.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace tmaops::cli {
namespace {

std::size_t count(const std::string& text, const std::string& piece) {
  std::size_t found = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++found;
  return found;
}

TEST(Picture, every_chunk_of_the_tile_is_drawn_once) {
  for (const tma::Swizzle swizzle :
       {tma::Swizzle::none, tma::Swizzle::b32, tma::Swizzle::b64, tma::Swizzle::b128, tma::Swizzle::b128_atom32,
        tma::Swizzle::b128_atom32_flip8, tma::Swizzle::b128_atom64}) {
    tma::TensorMapSpec spec = tma::tiled_spec(tma::ElementType::f32, {64, 64}, {8, 20});
    spec.swizzle = swizzle;
    const Picture picture = draw(spec, {{0, 0}, 128});
    std::int64_t elements = 0;
    int chunks = 0;
    for (const Line& line : picture.lines)
      for (const auto& chunk : line.chunks)
        if (chunk) {
          ++chunks;
          elements += chunk->elements;
          EXPECT_EQ(chunk->index[0] % 4, 0);
        }
    EXPECT_EQ(chunks, 40) << to_string(swizzle);
    EXPECT_EQ(elements, 160) << to_string(swizzle);
    EXPECT_EQ(picture.inside, 160);
  }
}

TEST(Picture, marks_fill_whole_and_partly) {
  tma::TensorMapSpec spec = tma::tiled_spec(tma::ElementType::f16, {60, 4}, {16, 2});
  spec.strides = {128};
  const Picture picture = draw(spec, {{48, 3}, 0});
  EXPECT_EQ(label(picture, *picture.lines[0].chunks[0]), "0,0");
  EXPECT_EQ(label(picture, *picture.lines[0].chunks[1]), "8,0+");  // 60 - 56 = 4 of 8 elements
  EXPECT_EQ(label(picture, *picture.lines[0].chunks[2]), "0,1*");
  EXPECT_EQ(picture.inside, 12);
  EXPECT_EQ(picture.fill, 20);
}

TEST(Picture, long_tiles_are_cut_in_text_and_complete_in_the_drawing) {
  const Picture picture = draw(tma::tiled_spec(tma::ElementType::f16, {64, 256}, {64, 100}), {{0, 0}, 0});
  const std::string text = picture_text(picture, false, 10);
  EXPECT_EQ(count(text, "\n"), 12U);
  EXPECT_NE(text.find("... 90 more lines of 128 bytes\n"), std::string::npos);
  const std::string svg = picture_svg(picture, "a <b> & c");
  EXPECT_EQ(count(svg, "<rect"), 801U);
  EXPECT_NE(svg.find("a &lt;b&gt; &amp; c"), std::string::npos);
  EXPECT_EQ(count(svg, "<svg"), 1U);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(Picture, refuses_a_load_that_would_fault) {
  tmaops::test::expect_error(
      ErrorCode::bad_tile_load, [] { draw(tma::tiled_spec(tma::ElementType::f16, {64, 64}, {16, 2}), {{0, 0}, 16}); },
      "0x10");
}

}  // namespace
}  // namespace tmaops::cli
