// Names of quaternions, positions and angles.
#include "recording/column_rules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/spelling.hpp"
#include "recording/decimal.hpp"

namespace tmaops::recording {
namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_separator(char c) { return c == '.' || c == '_' || c == '/' || c == '-' || c == ' ' || c == ':'; }

/// The words of a name in lower case: "robot0_eef_quat" is robot0, eef, quat; "vehicleYaw" is vehicle, yaw;
/// and "/reward.data", of a message with one value, reward.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool hump = i > 0 && is_upper(name[i]) && !is_upper(name[i - 1]);
    if ((is_separator(name[i]) || hump) && !words.back().empty()) words.emplace_back();
    if (!is_separator(name[i])) words.back() += lower_case(name.substr(i, 1));
  }
  if (words.back().empty() || (words.size() > 1 && words.back() == "data")) words.pop_back();
  return words;
}

/// A word for a quaternion or a position. `certain`: it has no other meaning, so the values need not be checked. In the
/// lists those stand before the colon, which no word has.
struct Word {
  std::string word;
  bool certain = false;
};
const std::string kQuaternionWords = " quat quaternion quaternions quats : q orientation rotation rot ori attitude ";
const std::string kPositionWords = " position positions pos translation trans : p t ";
constexpr std::size_t kLongestFrame = 3;  // "RS" in q_RS_w, "R" in p_RS_R_x

std::optional<Word> find_word(const std::string& known, const std::string& text) {
  const std::size_t at = known.find(" " + text + " ");
  return at == std::string::npos ? std::nullopt : std::optional(Word{text, at < known.find(':')});
}

/// The last known word, when only names of frames follow it.
std::optional<Word> find_word(const std::string& known, const std::vector<std::string>& words) {
  for (std::size_t i = words.size(); i-- > 0;) {
    if (const auto word = find_word(known, words[i])) return word;
    if (words[i].size() > kLongestFrame) return {};
  }
  return {};
}

/// "left_" of "left_q" for the word "q".
std::string prefix_of(std::string_view stem, std::string_view word) {
  const std::string text = lower_case(stem);
  const std::size_t at = text.rfind(word);
  return at == std::string::npos ? text : text.substr(0, at);
}

/// The parts of a name: "left_qx" has the stem "left_q" and the component x, "quat_3" and "q[3]" have a digit, and
/// "qx_world_device" has a suffix.
struct ComponentName {
  std::string stem;
  char component = 0;  // x y z w or a digit
  std::string suffix{};
};

std::optional<ComponentName> take_apart(std::string_view name) {
  std::string text = name_without_unit(name);  // whose stem keeps its case, which parts words: motionQuaternionX
  if (text.size() > 2 && text.back() == ']' && text[text.size() - 3] == '[')  // the number of an element: q[3]
    text = text.substr(0, text.size() - 3) + "_" + text[text.size() - 2];
  if (text.empty()) return {};
  const char last = lower_case(text.substr(text.size() - 1))[0];
  text.pop_back();
  if (last != 'x' && last != 'y' && last != 'z' && last != 'w' && !is_digit(last)) return {};
  if (is_digit(last) && !text.empty() && is_digit(text.back())) return {};
  return ComponentName{text, last};
}

/// What a name may be: its last letter is the component, or that of a word in front of names of frames.
std::vector<std::optional<ComponentName>> names_of(std::string_view name) {
  const std::string text = lower_case(name_without_unit(name));
  for (const std::string_view letter : {"q", "t", "p"})
    for (const char component : {'x', 'y', 'z', 'w'}) {
      const std::string word = std::string(letter) + component + "_";
      const std::size_t at = text.starts_with(word) ? 0 : text.find("_" + word);
      if (at == std::string::npos) continue;
      const std::size_t start = at + (text.starts_with(word) ? 0 : 1);
      return {ComponentName{text.substr(0, start) + std::string(letter), component, text.substr(start + 2)}};
    }
  return {take_apart(name)};
}

/// Numbers of one row by the stem of their names, in order. Those of an array whose numbers have names are of one
/// family, and columns of one number each are of another.
struct Family {
  std::string stem;
  std::string suffix{};
  std::optional<std::size_t> array{};
  std::map<char, ChannelReference> channels{};
};

std::vector<Family> families_of(const ColumnView& view) {
  std::vector<Family> families;
  const auto add = [&](const std::optional<ComponentName>& name, std::optional<std::size_t> array,
                       const ChannelReference& channel) {
    if (!name) return;
    auto family = std::ranges::find_if(families, [&](const Family& each) {
      return each.stem == name->stem && each.suffix == name->suffix && each.array == array;
    });
    if (family == families.end()) family = families.insert(families.end(), Family{name->stem, name->suffix, array, {}});
    family->channels.emplace(name->component, channel);
  };
  for (std::size_t c = 0; c < view.columns.size(); ++c) {
    const Column& column = view.columns[c];
    if (!view.numeric(c)) continue;
    for (std::size_t k = 0; k < column.channel_names.size(); ++k)
      for (const auto& name : names_of(column.channel_names[k])) add(name, c, {c, static_cast<std::int64_t>(k)});
    if (column.channel_names.empty() && column.width() == 1)
      for (const auto& name : names_of(column.name)) add(name, {}, {c, 0});
  }
  return families;
}

/// The channels of the family as a vector, when it has all these components.
std::optional<NamedVector> vector_of(const Family& family, std::string_view components, const ColumnView& view) {
  NamedVector vector;
  for (const char component : components) {
    const auto found = family.channels.find(component);
    if (found == family.channels.end()) return {};
    vector.components.push_back(found->second);
  }
  vector.text = view.text(vector.components);
  const auto first = [&](std::size_t i) {
    return std::pair(vector.components[i].column, vector.components[i].channel);
  };
  vector.w_first = vector.components.size() == 4 && first(3) < first(0);
  return vector;
}

/// PX4's logs have w in q[0].
bool is_px4(const ColumnView& view, const ChannelReference& first) {
  const std::string name = lower_case(view.columns[first.column].name);
  return name == "q[0]" || name.ends_with(".q[0]") || name.ends_with("/q[0]");
}

bool overlap(const NamedVector& one, const NamedVector& other) {
  return std::ranges::any_of(one.components, [&](const ChannelReference& channel) {
    return std::ranges::find(other.components, channel) != other.components.end();
  });
}

/// Vectors in an array whose last extent is `width`, but for those that the names of channels tell.
std::vector<NamedVector> vectors_in(const ColumnView& view, std::size_t column, std::int64_t width,
                                    const std::vector<NamedVector>& named) {
  const Column& source = view.columns[column];
  std::vector<NamedVector> found;
  if (source.data.shape.size() < 2 || source.data.shape.back() != width || !view.numeric(column)) return found;
  for (std::int64_t first = 0; first < source.width(); first += width) {
    NamedVector vector;
    for (std::int64_t k = 0; k < width; ++k) vector.components.push_back({column, first + k});
    vector.text = source.name;
    if (source.width() != width) vector.text += "[" + std::to_string(first) + ":" + std::to_string(first + width) + "]";
    vector.order_named = false;
    if (std::ranges::none_of(named, [&](const NamedVector& other) { return overlap(other, vector); }))
      found.push_back(std::move(vector));
  }
  return found;
}

}  // namespace

std::string name_without_unit(std::string_view name) {
  const auto trim = [&] {
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
  };
  trim();
  for (const auto& [open, close] : {std::pair{'[', ']'}, std::pair{'(', ')'}}) {
    if (!name.ends_with(close)) continue;
    const std::size_t at = name.rfind(open);
    if (at == std::string_view::npos || at == 0) continue;
    const std::string_view unit = name.substr(at + 1, name.size() - at - 2);
    if (!unit.empty() && std::ranges::all_of(unit, is_digit)) continue;  // the number of an element
    name = name.substr(0, at);
    trim();
  }
  return std::string(name);
}

std::vector<NamedVector> find_quaternions(const ColumnView& view) {
  std::vector<NamedVector> found;
  for (const Family& family : families_of(view)) {
    const std::vector<std::string> words = words_of(family.stem);
    auto word = find_word(kQuaternionWords, words);
    if (!word) continue;
    auto named = vector_of(family, "xyzw", view);
    const bool numbered = !named && family.channels.size() == 4;  // q_0 .. q_6 are joints
    if (numbered) named = vector_of(family, "0123", view);
    if (!named) continue;
    if (numbered && !word->certain && !has_unit_norm(view, named->components)) continue;
    named->order_named = !numbered;
    if (numbered && is_px4(view, named->components[0])) {
      std::ranges::rotate(named->components, named->components.begin() + 1);
      named->w_first = named->by_px4 = true;
    }
    named->prefix = prefix_of(family.stem, word->word);
    found.push_back(std::move(*named));
  }
  for (std::size_t c = 0; c < view.columns.size(); ++c) {
    std::vector<std::string> words = words_of(name_without_unit(view.columns[c].name));
    const bool w_first = !words.empty() && words.back() == "wxyz";
    const bool order_named = w_first || (!words.empty() && words.back() == "xyzw");
    if (order_named) words.pop_back();
    auto word = find_word(kQuaternionWords, words);
    for (std::size_t i = 0; !word && i < words.size(); ++i)  // robot0_eef_quat_site
      if (const auto other = find_word(kQuaternionWords, words[i]); other && other->certain) word = other;
    if (!word) continue;
    for (NamedVector& vector : vectors_in(view, c, 4, found)) {
      if (!word->certain && !has_unit_norm(view, vector.components)) continue;
      vector.prefix = prefix_of(view.columns[c].name, word->word);
      vector.order_named = order_named;
      vector.w_first = w_first;
      if (w_first) std::ranges::rotate(vector.components, vector.components.begin() + 1);
      found.push_back(std::move(vector));
    }
  }
  return found;
}

std::vector<NamedVector> find_positions(const ColumnView& view) {
  std::vector<NamedVector> found;
  std::optional<NamedVector> plain;
  for (const Family& family : families_of(view)) {
    const std::vector<std::string> words = words_of(family.stem);
    auto named = vector_of(family, "xyz", view);
    if (family.stem.empty()) {
      if (!named) named = vector_of(family, "xy", view);
      const bool real = named && std::ranges::any_of(named->components, [&](const ChannelReference& channel) {
                          return view.columns[channel.column].data.type.kind == ElementKind::real;
                        });
      if (real) plain = std::move(named);
      continue;
    }
    const auto word = find_word(kPositionWords, words);
    if (!word || !named) continue;
    named->prefix = prefix_of(family.stem, word->word);
    found.push_back(std::move(*named));
  }
  for (std::size_t c = 0; c < view.columns.size(); ++c) {
    const std::vector<std::string> words = words_of(name_without_unit(view.columns[c].name));
    const auto word = words.empty() ? std::nullopt : find_word(kPositionWords, words.back());
    if (!word || !word->certain || std::ranges::find(words, "joint") != words.end()) continue;
    for (NamedVector& vector : vectors_in(view, c, 3, found)) {
      vector.prefix = prefix_of(view.columns[c].name, word->word);
      found.push_back(std::move(vector));
    }
  }
  if (found.empty() && plain) found.push_back(std::move(*plain));
  return found;
}

namespace {

/// Whether a name ends with one of these words.
bool ends_in(std::string_view name, std::initializer_list<std::string_view> last) {
  const std::vector<std::string> words = words_of(name_without_unit(name));
  return !words.empty() && std::ranges::find(last, words.back()) != last.end();
}

/// Whether a name ends with is_first, for the word `first`.
bool is_step(std::string_view name, std::string_view last) {
  const std::vector<std::string> words = words_of(name_without_unit(name));
  return words.size() > 1 && words[words.size() - 2] == "is" && words.back() == last;
}

}  // namespace

bool named_reward(std::string_view name) { return ends_in(name, {"reward", "rewards"}); }

bool named_flag(std::string_view name) { return named_end(name) || ends_in(name, {"done", "success", "successes"}); }

bool named_end(std::string_view name) {
  return is_step(name, "last") || ends_in(name, {"dones", "terminal", "terminals", "terminated", "truncated",
                                                 "timeouts", "terminations", "truncations"});
}

bool named_first(std::string_view name) { return is_step(name, "first"); }

bool named_action(std::string_view name) {
  const std::vector<std::string> words = words_of(name_without_unit(name));
  const auto is = [](const std::string& word) { return word == "action" || word == "actions"; };
  return !words.empty() && (is(words.front()) || is(words.back()));
}

bool is_flag(const Array& array) {
  if (array.type.kind == ElementKind::boolean) return true;
  if (array.type.kind != ElementKind::integer && array.type.kind != ElementKind::real) return false;
  for (std::int64_t i = 0; i < array.size(); ++i)
    if (const double value = element_f64(array, i); value != 0 && value != 1 && !std::isnan(value)) return false;
  return true;
}

bool named_angle(std::string_view name) {
  static constexpr std::array kAngles{"yaw",     "heading", "theta",     "roll", "pitch", "bearing", "course",
                                      "azimuth", "psi",     "longitude", "lon",  "lng",   "hdg",     "cog"};
  std::vector<std::string> words = words_of(name_without_unit(name));
  if (words.size() > 1 && (words.back() == "deg" || words.back() == "rad")) words.pop_back();
  return !words.empty() && std::ranges::find(kAngles, words.back()) != kAngles.end();
}

}  // namespace tmaops::recording
