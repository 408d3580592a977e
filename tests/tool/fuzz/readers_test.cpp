// Fuzzes the readers of files. Every input is either read or refused with a tmaops::Error, without a crash, another
// exception, an endless loop or too much memory. Arrays are used, and written and read again.
//
//   TMAOPS_FUZZ_SECONDS=600 test_fuzz          longer than the 2 s per reader of an ordinary test run
//   TMAOPS_FUZZ_SEED=1 TMAOPS_FUZZ_ITERATION=2 test_fuzz --gtest_filter='*npz*'      one input again
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "fuzz/mutator.hpp"
#include "io/compression.hpp"
#include "io/npy.hpp"
#include "io/npz.hpp"
#include "io/recording.hpp"
#include "io/table.hpp"
#include "support/npy_bytes.hpp"
#include "support/scratch.hpp"
#include "tmaops/error.hpp"

namespace tmaops::fuzz {
namespace {

using test::bytes_of;
using test::npy;
using test::raw;
using test::zip;
using test::ZipPart;

// Small limits, so that an iteration takes microseconds and not the time to fill 16 MiB.
constexpr io::ZipLimits kLimits{.largest_ratio = 200, .believed_bytes = 1 << 16, .largest_member = 1 << 20};

volatile double sink = 0;

void use(const io::Array& array) {
  if (static_cast<std::size_t>(array.size()) * array.type.bytes != array.span().size()) std::abort();
  for (std::int64_t i = 0; i < array.size(); ++i) {
    if (array.type.kind == io::ElementKind::text) {
      sink = sink + static_cast<double>(io::element_text(array, i).size());
    } else {
      sink = sink + io::element_f64(array, i);
    }
  }
}

void read_npy(const std::string& input) {
  const io::Array array = io::parse_npy(bytes_of(input), "fuzz.npy", "fuzz");
  use(array);
  const std::span<const std::byte> data = array.span();
  const std::string again =
      io::npy_header(array) + std::string(reinterpret_cast<const char*>(data.data()), data.size());
  const io::Array back = io::parse_npy(bytes_of(again), "again.npy", "again");
  if (back.shape != array.shape || !(back.type == array.type)) std::abort();
}

[[maybe_unused]] void read_npz(const std::string& input) {
  const io::NpzReader npz(bytes_of(input), "fuzz.npz", kLimits);
  for (const std::string& name : npz.names()) try {
      use(npz.read(name));
    } catch (const Error&) {  // a damaged array must not keep the others from being read
    }
}

void use(const io::Recording& recording) {
  for (const io::Column& column : recording.columns) {
    if (column.data.shape.at(0) != recording.rows()) std::abort();
    use(column.data);
  }
  if (recording.offsets.back() != recording.rows()) std::abort();
  try {
    io::check_order(recording, false);
  } catch (const Error&) {
  }
}

void read_as(io::FileFormat format, const std::string& input) {
  io::ReadOptions options;
  options.format = format;
  use(io::parse_recording(bytes_of(input), "fuzz", options));
}

void read_gzip(const std::string& input) {
  const io::Bytes text = io::decompress(bytes_of(input), io::Compression::gzip, "fuzz.gz",
                                        {.largest_ratio = 200, .believed_bytes = 1 << 16});
  sink = sink + static_cast<double>(text.size);
}

/// Runs the mutations in a child, so that whatever ends it can be reported with its seed and iteration.
void fuzz(const Corpus& corpus, const std::function<void(const std::string&)>& target) {
  const auto number = [](const char* name, double fallback) {
    const char* text = std::getenv(name);
    return text == nullptr ? fallback : std::strtod(text, nullptr);
  };
  const auto seed = static_cast<std::uint64_t>(number("TMAOPS_FUZZ_SEED", 20261121));
  const double seconds = number("TMAOPS_FUZZ_SECONDS", 10) / 5;
  const double only = number("TMAOPS_FUZZ_ITERATION", -1);
  for (const std::string& file : corpus.files) ASSERT_NO_THROW(target(file)) << "the corpus itself must be good";

  struct Shared {
    std::uint64_t iteration, refused;
  };
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = static_cast<volatile Shared*>(memory);
  const pid_t child = fork();
  if (child == 0) {
    Mutator mutator(corpus, seed);
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    std::uint64_t iteration = only >= 0 ? static_cast<std::uint64_t>(only) : 0;
    do {
      shared->iteration = iteration;
      const std::string input = mutator.input(iteration++);
      alarm(10);  // an input that takes longer ends the child
      try {
        target(input);
      } catch (const Error&) {
        shared->refused = shared->refused + 1;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "not a tmaops::Error: %s\n", error.what());
        _exit(1);
      }
    } while (only < 0 && std::chrono::steady_clock::now() < end);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "status " << status << " at TMAOPS_FUZZ_SEED=" << seed
                       << " TMAOPS_FUZZ_ITERATION=" << shared->iteration;
  std::printf("%llu inputs, %llu refused\n", static_cast<unsigned long long>(shared->iteration) + 1,
              static_cast<unsigned long long>(shared->refused));
  munmap(memory, sizeof(Shared));
}

const std::vector<std::string> kHeaderWords{"{'descr': ", "'fortran_order': True",
                                            "'shape': (", "(0, 9223372036854775807)",
                                            "<f8",        "<U9",
                                            "|S3",        "|O",
                                            ">f4",        "|b1",
                                            "\x93NUMPY",  "99999999999999999999",
                                            "-1",         "L",
                                            ","};

Corpus npy_corpus() {
  return {{npy("<f8", "(2, 3)", std::string(48, '\1')), npy("<i4", "(2, 3)", std::string(24, '\2'), true),
           npy("<U2", "(3,)", raw<char32_t>({'a', 'b', 'c', 0, 0x1f600, 0xd800})), npy("|u1", "(4,)", "abcd", false, 2),
           npy("|S3", "()", "abc", false, 3), npy("<f2", "(0, 7)", "")},
          kHeaderWords};
}

[[maybe_unused]] Corpus npz_corpus() {
  const std::string times = npy("<f8", "(3,)", raw<double>({0, 1, 2})), x = npy("<f4", "(3, 2)", std::string(24, '\0'));
  const std::string offsets = npy("<i8", "(3,)", raw<std::int64_t>({0, 1, 3}));
  Corpus corpus{{}, kHeaderWords};
  for (const int kind : {0, 1, 2, 3}) {
    std::vector<ZipPart> parts{ZipPart::make("times.npy", times, kind == 1), ZipPart::make("x.npy", x, kind != 0),
                               ZipPart::make("offsets.npy", offsets), ZipPart::make("note.txt", "hello", kind == 2)};
    for (ZipPart& part : parts) {
      part.zip64 = kind == 2;
      part.streamed = kind == 3;
    }
    corpus.files.push_back(zip(parts));
  }
  for (const char* word : {"PK\x01\x02", "PK\x03\x04", "PK\x05\x06", "PK\x06\x06", "PK\x06\x07", "PK\x07\x08", "../",
                           "/x.npy", "times.npy"})
    corpus.words.emplace_back(word);
  return corpus;
}

Corpus text_corpus(bool tum) {
  Corpus corpus;
  if (tum) {
    corpus.files = {
        "# timestamp tx ty tz qx qy qz qw\n1311868163.8697 -0.1357 -1.4217 1.4764 0.6453 -0.5498 0.3363 "
        "-0.4101\n1311868163.8731 1 2 3 0 0 0 1\n",
        "0 1 2 3 0 0 0 1\r\n1e0 1 2 3 0 0 0 -1\r\n"};
  } else {
    corpus.files = {"t,x,label\n0,1.5,\"a, \"\"b\"\"\"\n1,-2e-3,c\n", "time [ns];x\n1311868163869700000;nan\n",
                    "# t x\n0 1\n0.25 2\n\n# end\n1.5e0\t3",
                    "\xef\xbb\xbf"
                    "a,b,t\r\n1,,0\r\n2,,1\r\n"};
  }
  corpus.words = {"nan",
                  "inf",
                  "1e999",
                  "-",
                  "+",
                  ",",
                  ";",
                  "\"",
                  "\"\"",
                  "#",
                  "\n",
                  "\r\n",
                  "\t",
                  "0,5",
                  "9223372036854775807",
                  "1e-400",
                  "99999999999999999999.5",
                  "\xef\xbb\xbf",
                  "\xff",
                  "e",
                  "."};
  return corpus;
}

Corpus gzip_corpus() {
  Corpus corpus{{}, {"\x1f\x8b\x08", std::string(4, '\0'), "\xff\xff"}};
  for (const std::string text : {"t,x\n0,1\n1,2\n", ""}) {
    std::string packed;
    io::Compressor compressor(io::Compression::gzip, [&](std::string_view piece) { packed += piece; });
    compressor.write(text);
    compressor.finish();
    corpus.files.push_back(packed);
    corpus.files.push_back(packed + packed);
  }
  return corpus;
}

/// Times in other forms than numbers.
Corpus times_corpus() {
  Corpus corpus = text_corpus(false);
  corpus.files = {"time,x\n2024-05-01T12:00:00.5Z,1\n2024-05-01T12:00:01Z,2\n",
                  "time,x\n2024-02-29 23:59:59+02:00,1\n2024-03-01 00:00:00+02:00,2\n",
                  "secs,nsecs,x\n1,5,1\n2,999999999,2\n", "seq,header.stamp.sec,header.stamp.nanosec\n1,1,0\n2,1,1\n"};
  for (const char* word : {"-02:00", "Z", "T", "24:00", "60", "2024-13-01", "1677-", "2262-", "1000000000"})
    corpus.words.emplace_back(word);
  return corpus;
}

Corpus kitti_corpus() {
  Corpus corpus = text_corpus(true);
  corpus.files = {"1 0 0 1 0 1 0 2 0 0 1 3\n0 -1 0 1.5 1 0 0 2 0 0 1 3\n"};
  return corpus;
}

TEST(Fuzz, gzip) { fuzz(gzip_corpus(), read_gzip); }
TEST(Fuzz, times) {
  fuzz(times_corpus(), [](const std::string& input) { read_as(io::FileFormat::csv, input); });
}
TEST(Fuzz, kitti) {
  const test::Scratch folder;
  io::ReadOptions options;
  options.format = io::FileFormat::kitti;
  options.kitti_times = folder.file("times.txt", "0\n0.5\n");
  fuzz(kitti_corpus(), [&](const std::string& input) { use(io::parse_recording(bytes_of(input), "fuzz", options)); });
}
TEST(Fuzz, npy) { fuzz(npy_corpus(), read_npy); }
TEST(Fuzz, npz) { fuzz(npz_corpus(), read_npz); }
TEST(Fuzz, npz_recording) {
  fuzz(npz_corpus(), [](const std::string& input) { read_as(io::FileFormat::npz, input); });
}
TEST(Fuzz, csv) {
  fuzz(text_corpus(false), [](const std::string& input) { read_as(io::FileFormat::csv, input); });
}
TEST(Fuzz, tum) {
  fuzz(text_corpus(true), [](const std::string& input) { read_as(io::FileFormat::tum, input); });
}

}  // namespace
}  // namespace tmaops::fuzz
