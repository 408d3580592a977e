// A mutational fuzzer in a few lines: the input of iteration i depends on the seed and i alone, so that any failure can
// be run again by itself.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tmaops::fuzz {

/// Known-good inputs and the words of the format.
struct Corpus {
  std::vector<std::string> files{};
  std::vector<std::string> words{};
};

class Mutator {
 public:
  Mutator(const Corpus& corpus, std::uint64_t seed) : corpus_(corpus), seed_(seed) {}

  /// One of the files with one to eight changes.
  std::string input(std::uint64_t iteration) {
    random_.seed(seed_ * 0x9e3779b97f4a7c15U + iteration);
    std::string text = corpus_.files[below(corpus_.files.size())];
    for (std::size_t i = 0, changes = std::size_t{1} << below(4); i < changes; ++i) change(text);
    if (text.size() > kLongest) text.resize(kLongest);
    return text;
  }

 private:
  static constexpr std::size_t kLongest = 1 << 16;

  std::size_t below(std::size_t count) { return count == 0 ? 0 : static_cast<std::size_t>(random_() % count); }
  char byte() { return static_cast<char>(static_cast<unsigned char>(random_())); }

  void change(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(std::size_t{1} << below(8)) + 1;
    switch (below(9)) {
      case 0:  // one bit
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:  // one byte
        if (at < text.size()) text[at] = byte();
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:  // cut off
        text.resize(at);
        break;
      case 4:  // the same piece again
        text.insert(at, text.substr(below(text.size() + 1), length));
        break;
      case 5:
        for (std::size_t i = 0; i < length; ++i) text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), byte());
        break;
      case 6: {  // a number of 1, 2, 4 or 8 bytes that breaks sums and products
        static constexpr std::uint64_t kNumbers[] = {0,
                                                     1,
                                                     0x7f,
                                                     0x80,
                                                     0xff,
                                                     0x7fff,
                                                     0x8000,
                                                     0xffff,
                                                     10'000,
                                                     10'001,
                                                     0x7fffffff,
                                                     0x80000000,
                                                     0xffffffff,
                                                     0x7fffffffffffffff,
                                                     0x8000000000000000,
                                                     0xffffffffffffffff};
        const std::uint64_t number = kNumbers[below(std::size(kNumbers))] + below(3) - 1;
        for (std::size_t i = 0, bytes = std::size_t{1} << below(4); i < bytes && at + i < text.size(); ++i)
          text[at + i] = static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
        break;
      }
      case 7: {  // a word of the format, put in or written over
        const std::string& word = corpus_.words[below(corpus_.words.size())];
        text.replace(at, below(2) * word.size(), word);
        break;
      }
      default: {  // the end of another file
        const std::string& other = corpus_.files[below(corpus_.files.size())];
        text = text.substr(0, at) + other.substr(below(other.size() + 1));
      }
    }
  }

  const Corpus& corpus_;
  std::uint64_t seed_;
  std::mt19937_64 random_;
};

}  // namespace tmaops::fuzz
