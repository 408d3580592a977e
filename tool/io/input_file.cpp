#include "offers/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "io/names.hpp"

namespace tmaops::io {
namespace {

constexpr std::size_t kPipeChunk = std::size_t{1} << 20;

[[noreturn]] void cannot_read(const std::filesystem::path& path, std::string got) {
  fail(ErrorCode::cannot_read, input_name(path), got, "a file that can be read");
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

// Reads `size` bytes, or fewer at the end of the file. Returns how many.
std::size_t read_up_to(int file, std::byte* to, std::size_t size, const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = read(file, to + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot_read(path, std::generic_category().message(errno));
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

}  // namespace

bool is_standard(const std::filesystem::path& path) { return path.native() == "-"; }

std::string input_name(const std::filesystem::path& path) { return is_standard(path) ? "stdin" : display(path); }

Bytes read_file(const std::filesystem::path& path) {
  const bool standard = is_standard(path);
  static std::atomic<bool> standard_was_read{false};
  if (standard && standard_was_read.exchange(true))
    cannot_read(path, "'-' for two inputs, and stdin can be read once only");
  const Descriptor file(standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) cannot_read(path, std::generic_category().message(errno));
  struct stat status{};
  if (fstat(file.get(), &status) != 0) cannot_read(path, std::generic_category().message(errno));
  if (S_ISDIR(status.st_mode)) cannot_read(path, "a directory");
  if (S_ISREG(status.st_mode) && !standard) {
    auto data = allocate(static_cast<std::uint64_t>(status.st_size), display(path));
    const std::size_t size = read_up_to(file.get(), data.get(), static_cast<std::size_t>(status.st_size), path);
    return {std::move(data), size};
  }
  if (!S_ISFIFO(status.st_mode) && !standard) cannot_read(path, "a device or socket");
  std::vector<std::byte> all;
  try {
    for (std::size_t last = kPipeChunk; last == kPipeChunk;) {
      const std::size_t before = all.size();
      all.resize(before + kPipeChunk);
      last = read_up_to(file.get(), all.data() + before, kPipeChunk, path);
      all.resize(before + last);
    }
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, input_name(path), std::to_string(all.size()) + " bytes and more from a pipe",
         "memory");
  }
  auto data = allocate(all.size(), input_name(path));
  if (!all.empty()) std::memcpy(data.get(), all.data(), all.size());
  return {std::move(data), all.size()};
}

}  // namespace tmaops::io
