#include "config/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "offers/input_file.hpp"

namespace tmaops::io {
namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 20;
constexpr std::size_t kDeepest = 32;

/// Builds the tree from the parser's events, because yaml-cpp's own tree forgets the places of keys and accepts
/// duplicate keys.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::string source) : source_(std::move(source)) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_extras(mark, "", anchor);
    finish(node(YamlNode::Kind::empty, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail_at(ErrorCode::yaml_syntax, place(mark), "alias", "'*...'", "the value written out",
            "Aliases are not supported.");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_extras(mark, tag, anchor);
    YamlNode scalar = node(YamlNode::Kind::scalar, mark);
    scalar.scalar = value;
    scalar.quoted = tag == "!";  // yaml-cpp's mark of a quoted scalar; "?" is a plain one
    const bool null = !scalar.quoted && (value.empty() || value == "~" || value == "null");
    if (null && !expects_key()) scalar.kind = YamlNode::Kind::empty;
    finish(std::move(scalar));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_extras(mark, tag, anchor);
    open(node(YamlNode::Kind::list, mark));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_extras(mark, tag, anchor);
    open(node(YamlNode::Kind::map, mark));
  }
  void OnMapEnd() override { close(); }

  YamlNode take() { return std::move(root_); }

 private:
  struct Level {
    YamlNode node;
    bool expects_key = true;  // of a map
    YamlEntry entry{};        // whose value comes next
  };

  Place place(const YAML::Mark& mark) const { return {source_, mark.line + 1, mark.column + 1}; }  // marks count from 0
  YamlNode node(YamlNode::Kind kind, const YAML::Mark& mark) const {
    YamlNode made;
    made.kind = kind;
    made.place = place(mark);
    return made;
  }
  bool expects_key() const {
    return !levels_.empty() && levels_.back().node.kind == YamlNode::Kind::map && levels_.back().expects_key;
  }
  void refuse_extras(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != 0)
      fail_at(ErrorCode::yaml_syntax, place(mark), "anchor", "'&...'", "a value without anchor",
              "Anchors are not supported.");
    if (!tag.empty() && tag != "?" && tag != "!")
      fail_at(ErrorCode::yaml_syntax, place(mark), "tag", "'" + display_text(tag) + "'", "a value without tag",
              "Tags are not supported.");
  }
  void open(YamlNode made) {
    if (expects_key()) fail_key(made);
    if (levels_.size() >= kDeepest)
      fail_at(ErrorCode::yaml_syntax, made.place, "nesting", "more than " + std::to_string(kDeepest) + " levels",
              "fewer");
    levels_.push_back({std::move(made)});
  }
  void close() {
    YamlNode done = std::move(levels_.back().node);
    levels_.pop_back();
    finish(std::move(done));
  }
  void finish(YamlNode done) {
    if (levels_.empty()) {
      root_ = std::move(done);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == YamlNode::Kind::list) {
      level.node.items.push_back(std::move(done));
    } else if (level.expects_key) {
      if (done.kind != YamlNode::Kind::scalar) fail_key(done);
      if (const YamlEntry* earlier = level.node.find(done.scalar))
        fail_at(ErrorCode::duplicate_key, done.place, display_text(done.scalar), "the key a second time",
                "one value; the first is at " + earlier->place.text());
      level.entry = {std::move(done.scalar), std::move(done.place)};
      level.expects_key = false;
    } else {
      if (done.kind == YamlNode::Kind::empty) done.place = level.entry.place;  // the parser's is that of what follows
      level.entry.value = std::move(done);
      level.node.entries.push_back(std::move(level.entry));
      level.expects_key = true;
    }
  }
  [[noreturn]] void fail_key(const YamlNode& key) const {
    fail_at(ErrorCode::wrong_type, key.place, "key", key.describe(), "a word");
  }

  std::string source_;
  std::vector<Level> levels_;
  YamlNode root_;
};

}  // namespace

const YamlEntry* YamlNode::find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &YamlEntry::key);
  return found == entries.end() ? nullptr : &*found;
}

std::string YamlNode::describe() const {
  switch (kind) {
    case Kind::empty:
      return "nothing";
    case Kind::scalar:
      return "'" + display_text(scalar) + "'";
    case Kind::list:
      return "a list";
    case Kind::map:
      break;
  }
  return "a mapping";
}

void fail_at(ErrorCode code, const Place& place, const std::string& what, std::string got, std::string needed,
             std::string mend) {
  fail(code, place.text() + (what.empty() ? "" : ": " + what), got, needed, mend);
}

YamlNode parse_yaml(const std::string& text, const std::string& source) {
  if (const auto bad = text.find('\0'); bad != std::string::npos)
    fail_at(ErrorCode::yaml_syntax, {source}, "", "a zero byte at offset " + std::to_string(bad), "text");
  std::istringstream stream(text);
  Builder builder(source);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return {YamlNode::Kind::empty, {source, 1, 1}};
    Builder second(source);
    if (parser.HandleNextDocument(second))
      fail_at(ErrorCode::yaml_syntax, second.take().place, "second document", "'---'", "one document");
  } catch (const YAML::Exception& error) {
    const Place place =
        error.mark.is_null() ? Place{source} : Place{source, error.mark.line + 1, error.mark.column + 1};
    fail_at(ErrorCode::yaml_syntax, place, "", display_text(error.msg), "YAML");
  }
  return builder.take();
}

YamlNode read_yaml_file(const std::filesystem::path& path) {
  const Bytes file = read_file(path);
  if (file.size > kLargestFile)
    fail(ErrorCode::cannot_read, input_name(path), "more than 1 MiB", "a configuration file");
  return parse_yaml(std::string(file.text()), input_name(path));
}

}  // namespace tmaops::io
