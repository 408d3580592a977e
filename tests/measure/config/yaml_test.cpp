#include "config/yaml.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/scratch.hpp"

namespace tmaops::io {
namespace {

using test::expect_error;

void expect_failure(ErrorCode code, const std::string& text, const std::string& place) {
  expect_error(code, [&] { parse_yaml(text, "c.yaml"); }, place);
}

TEST(Yaml, keeps_places_counted_from_one) {
  const YamlNode document = parse_yaml("a: 1\ngemm:\n  - {size: [256, '7']}\n", "c.yaml");
  ASSERT_EQ(document.entries.size(), 2u);
  const YamlEntry* gemm = document.find("gemm");
  ASSERT_NE(gemm, nullptr);
  EXPECT_EQ(gemm->place.text(), "c.yaml:2:1");
  const YamlEntry* size = gemm->value.items.at(0).find("size");
  ASSERT_NE(size, nullptr);
  EXPECT_EQ(size->place.text(), "c.yaml:3:6");
  EXPECT_EQ(size->value.items.at(0).place.text(), "c.yaml:3:13");
  EXPECT_FALSE(size->value.items.at(0).quoted);
  EXPECT_TRUE(size->value.items.at(1).quoted);
}

TEST(Yaml, duplicate_keys_are_refused_at_every_depth) {
  expect_failure(ErrorCode::duplicate_key, "seed: 1\nseed: 2\n", "c.yaml:2:1");
  expect_failure(ErrorCode::duplicate_key, "gemm: {size: 1, mode: RC, size: 2}\n", "c.yaml:1:27");
  expect_error(
      ErrorCode::duplicate_key, [] { parse_yaml("a:\n  b: 1\n  b: 1\n", "c.yaml"); }, "c.yaml:3:3",
      "the first is at c.yaml:2:3");
}

TEST(Yaml, syntax_errors_have_a_place) {
  expect_failure(ErrorCode::yaml_syntax, "a: [1, 2\n", "c.yaml:");
  expect_failure(ErrorCode::yaml_syntax, "a: b: c\n", "c.yaml:1:5");
  expect_failure(ErrorCode::yaml_syntax, std::string("a: \0b", 5), "zero byte");
  expect_failure(ErrorCode::yaml_syntax, "a: 1\n---\nb: 2\n", "second document");
}

TEST(Yaml, anchors_aliases_and_tags_are_refused) {
  expect_failure(ErrorCode::yaml_syntax, "a: &x 1\nb: *x\n", "c.yaml:1:4");
  expect_failure(ErrorCode::yaml_syntax, "a: !!int 1\n", "c.yaml:1:4");
}

TEST(Yaml, keys_must_be_words) { expect_failure(ErrorCode::wrong_type, "? [1, 2]\n: 3\n", "c.yaml:1:3"); }

TEST(Yaml, deep_nesting_is_refused) {
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "{a: ";
  expect_error(ErrorCode::yaml_syntax, [&] { parse_yaml(deep + "1" + std::string(40, '}'), "c.yaml"); }, "32 levels");
  EXPECT_THROW(parse_yaml(std::string(20000, '['), "c.yaml"), Error) << "and no overflowing stack";
}

TEST(Yaml, empty_document_is_empty) {
  EXPECT_EQ(parse_yaml("", "c.yaml").kind, YamlNode::Kind::empty);
  EXPECT_EQ(parse_yaml("# nothing\n", "c.yaml").kind, YamlNode::Kind::empty);
}

TEST(Yaml, files_that_cannot_be_read_say_so) {
  const test::Scratch folder;
  expect_error(ErrorCode::cannot_read, [&] { read_yaml_file(folder / "none.yaml"); }, "none.yaml", "No such file");
  expect_error(ErrorCode::cannot_read, [&] { read_yaml_file(folder.path()); }, "a directory");
  const auto large = folder.file("large.yaml", std::string((1U << 20) + 1, '#'));
  expect_error(ErrorCode::cannot_read, [&] { read_yaml_file(large); }, "1 MiB");
}

}  // namespace
}  // namespace tmaops::io
