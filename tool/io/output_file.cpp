#include "offers/output_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>
#include <utility>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/signals_held.hpp"
#include "offers/input_file.hpp"

namespace tmaops::io {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
constexpr std::size_t kLongestName = 255;  // NAME_MAX of every Linux file system in use

// The files that a signal handler removes. Where there are more at once, only their destructors remove the others.
std::array<std::atomic<const OutputFile*>, 64> open_outputs;

void replace_in_list(const OutputFile* from, const OutputFile* to) {
  for (std::atomic<const OutputFile*>& output : open_outputs) {
    const OutputFile* expected = from;
    if (output.compare_exchange_strong(expected, to)) return;
  }
}

// `.NAME.tmaops-partial`, or a digest of the name (FNV-1a) when that would be too long for the file system.
std::string partial_name(const std::string& name) {
  const std::string plain = "." + name + ".tmaops-partial";
  if (plain.size() <= kLongestName) return plain;
  std::uint64_t digest = 0xcbf29ce484222325U;
  for (const char c : name) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return "." + std::to_string(digest) + ".tmaops-partial";
}

[[noreturn]] void refuse(const std::filesystem::path& path, std::string got, std::string needed,
                         std::string mend = {}) {
  fail(ErrorCode::cannot_write, display(path), got, needed, mend);
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

OutputFile::OutputFile(std::filesystem::path path, const OutputOptions& options)
    : path_(std::move(path)), name_(path_.filename()), partial_name_(partial_name(name_)), force_(options.force) {
  // Makes a file size limit (ulimit -f) an error of write() instead of a signal that ends the process.
  struct sigaction action{};
  if (sigaction(SIGXFSZ, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) std::signal(SIGXFSZ, SIG_IGN);
  standard_ = is_standard(path_);
  if (standard_) {
    open_standard();
    return;
  }
  try {
    open_directory();
    check_target(options);  // before the lock, so that a wrong name leaves no file behind
    open_partial();
    check_target(options);  // again, since the process that held the lock may have written the target
    buffer_.reserve(kBufferBytes);
  } catch (...) {
    discard();
    throw;
  }
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::open_standard() {
  file_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (file_ < 0) refuse(path_, "stdout: " + std::generic_category().message(errno), "an open stdout");
  buffer_.reserve(kBufferBytes);
}

void OutputFile::open_directory() {
  if (name_.empty() || name_ == "." || name_ == "..")
    refuse(path_, "'" + display(path_) + "'", "the path of a file, not of a directory");
  const std::filesystem::path parent = path_.has_parent_path() ? path_.parent_path() : ".";
  directory_ = open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_ < 0 && errno == EACCES)  // files may be made in this folder but not listed
    directory_ = open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory_ < 0) {
    const int error = errno;
    refuse(path_, "folder '" + display(parent) + "': " + std::generic_category().message(error),
           "a folder that exists and can be opened");
  }
}

void OutputFile::check_target(const OutputOptions& options) const {
  struct stat target{};
  if (fstatat(directory_, name_.c_str(), &target, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return;
    refuse(path_, std::generic_category().message(errno), "a path that can be written");
  }
  for (const std::filesystem::path& input : options.inputs) {
    struct stat followed{}, other{};
    if (stat(input.c_str(), &other) != 0 || fstatat(directory_, name_.c_str(), &followed, 0) != 0) continue;
    if (same_file(followed, other))
      fail(ErrorCode::output_is_input, display(path_), "the file that is read as '" + display(input) + "'",
           "another file");
  }
  if (S_ISDIR(target.st_mode)) refuse(path_, "a directory", "the path of a file");
  if (S_ISLNK(target.st_mode)) {
    std::array<char, 4096> link{};
    const ssize_t length = readlinkat(directory_, name_.c_str(), link.data(), link.size());
    refuse(path_,
           "a symbolic link to '" + display_text(std::string_view(link.data(), length > 0 ? std::size_t(length) : 0)) +
               "'",
           "a regular file or a new name", "Name the file that the link points to, or remove the link.");
  }
  if (!S_ISREG(target.st_mode)) refuse(path_, "a device, pipe or socket", "a regular file or a new name");
  if (!force_)
    fail(ErrorCode::output_exists, display(path_), "a file of " + std::to_string(target.st_size) + " bytes",
         "a new name, or --force");
  if ((target.st_mode & 0222) == 0 || faccessat(directory_, name_.c_str(), W_OK, AT_EACCESS) != 0)
    refuse(path_, "a read-only file", "a file that may be replaced", "Give it write permission, or remove it.");
  // In a folder with the sticky bit, such as /tmp, only the owner of a file or of the folder may replace the file.
  struct stat folder{};
  if (geteuid() != 0 && fstat(directory_, &folder) == 0 && (folder.st_mode & S_ISVTX) != 0 &&
      folder.st_uid != geteuid() && target.st_uid != geteuid())
    refuse(path_, "another user's file in a folder with the sticky bit", "a file of your own, or a new name",
           "Choose another name, or ask its owner to remove it.");
}

void OutputFile::open_partial() {
  // A signal handler on this thread finds both the partial file and its entry in the list, or neither.
  const SignalsHeld held;
  const std::string shown = "'" + display_text(partial_name_) + "'";
  const std::string mend = "Remove it: tmaops keeps its unfinished output under that name.";
  file_ = openat(directory_, partial_name_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file_ < 0) {
    const int error = errno;
    if (error == ENOSPC || error == EDQUOT || error == EIO) fail_writing("open", error);
    if (error == ELOOP) refuse(path_, "a symbolic link named " + shown + " in its folder", "no such link", mend);
    refuse(path_, std::generic_category().message(error), "a folder in which files can be made");
  }
  struct stat opened{}, named{};
  if (fstat(file_, &opened) != 0) fail_writing("fstat", errno);
  // In a shared folder another user may have put a file, or a link to a file of this user, under this name.
  if (!S_ISREG(opened.st_mode) || opened.st_uid != geteuid() || opened.st_nlink > 1) {
    close(std::exchange(file_, -1));
    refuse(path_, shown + " in its folder, which is not a plain file of this user", "no such file", mend);
  }
  const bool locked = flock(file_, LOCK_EX | LOCK_NB) == 0;
  const int error = errno;
  if (!locked && error != EWOULDBLOCK) {
    close(std::exchange(file_, -1));
    refuse(path_, "flock: " + std::generic_category().message(error), "a file system with locks");
  }
  // Between open and flock the process that held the lock may have renamed or removed the file.
  if (!locked || fstatat(directory_, partial_name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      !same_file(opened, named)) {
    close(std::exchange(file_, -1));
    fail(ErrorCode::output_locked, display(path_), shown + " is locked", "that no other process writes it");
  }
  replace_in_list(nullptr, this);
  if (ftruncate(file_, 0) != 0) fail_writing("ftruncate", errno);
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void OutputFile::write(std::span<const std::byte> bytes) {
  if (file_ < 0) fail(ErrorCode::internal, display(path_), "write after commit", "an open file");
  while (!bytes.empty()) {
    const std::size_t room = kBufferBytes - buffer_.size();
    const std::size_t part = bytes.size() < room ? bytes.size() : room;
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), part);
    bytes = bytes.subspan(part);
    if (buffer_.size() == kBufferBytes) flush();
  }
}

void OutputFile::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !reader_left_) {
    const ssize_t count = ::write(file_, rest.data(), rest.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      if (standard_ && errno == EPIPE) {
        reader_left_ = true;
        break;
      }
      fail_writing("write", errno);
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
    written_ += static_cast<std::uint64_t>(count);
  }
  buffer_.clear();
}

void OutputFile::commit() {
  flush();
  if (standard_) {
    close(std::exchange(file_, -1));
    return;
  }
  struct stat replaced{};
  if (force_ && fstatat(directory_, name_.c_str(), &replaced, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(replaced.st_mode) &&
      fchmod(file_, replaced.st_mode & 0777) != 0)
    fail_writing("fchmod", errno);
  if (fsync(file_) != 0 && errno != EINVAL && errno != ENOTSUP) fail_writing("fsync", errno);
  {
    const SignalsHeld held;
    publish();
    replace_in_list(this, nullptr);
    close(std::exchange(file_, -1));  // ends the lock too
  }
  fsync(directory_);  // makes the rename durable where the file system can
  close(std::exchange(directory_, -1));
}

// Renames the partial file. Without `force` a file that appeared meanwhile is kept. A file system without
// RENAME_NOREPLACE leaves a moment between the look at the target and the rename.
void OutputFile::publish() {
  const char* from = partial_name_.c_str();
  const char* to = name_.c_str();
  if (!force_) {
    if (renameat2(directory_, from, directory_, to, RENAME_NOREPLACE) == 0) return;
    if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP)
      errno = faccessat(directory_, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? EEXIST : 0;
    if (errno == EEXIST) {
      discard();
      fail(ErrorCode::output_exists, display(path_), "a file that another program made during this run",
           "a new name, or --force");
    }
    if (errno != 0) fail_writing("rename", errno);
  }
  if (renameat(directory_, from, directory_, to) != 0) fail_writing("rename", errno);
}

void OutputFile::fail_writing(const char* call, int error_number) {
  discard();
  fail(ErrorCode::write_failed, standard_ ? "stdout" : display(path_),
       std::string(call) + ": " + std::generic_category().message(error_number),
       "room and permission for the whole file");
}

void OutputFile::discard() noexcept {
  const SignalsHeld held;
  // The lock is still held, so the file is not another process's.
  if (file_ >= 0 && !standard_) unlinkat(directory_, partial_name_.c_str(), 0);
  replace_in_list(this, nullptr);
  if (file_ >= 0) close(std::exchange(file_, -1));
  if (directory_ >= 0) close(std::exchange(directory_, -1));
}

void write_file(const std::filesystem::path& path, std::string_view content, const OutputOptions& options) {
  OutputFile file(path, options);
  file.write(content);
  file.commit();
}

void discard_partial_outputs() noexcept {
  for (const std::atomic<const OutputFile*>& output : open_outputs)
    if (const OutputFile* file = output.load()) unlinkat(file->directory_, file->partial_name_.c_str(), 0);
}

}  // namespace tmaops::io
