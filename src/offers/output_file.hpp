// Output files that are written completely or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tmaops::io {

struct OutputOptions {
  /// Replace a file that is there already. A file without any write permission is not replaced even so.
  bool force = false;
  /// Files that may not be the output. They are compared by device and inode, so links and other spellings of a path
  /// count.
  std::vector<std::filesystem::path> inputs{};
};

/// Removes the partial file of every OutputFile that is open in this process. Async-signal-safe, for a handler that
/// ends the process right after it: no OutputFile may be used afterwards.
void discard_partial_outputs() noexcept;

/// A file that appears under its name only at commit(). Until then the bytes are in `.NAME.tmaops-partial` beside it,
/// which is locked (flock). A second process that wants the same output gets output_locked. A partial file that a
/// killed process left is taken over. Without commit() (an exception, an early return, discard_partial_outputs() from a
/// signal handler) the partial file is removed and an earlier file of that name keeps its bytes.
///
/// "-" is stdout, which gets the bytes at once. A reader that leaves ends the writing without an error.
///
/// An output that is a symbolic link is refused with the name of its target. A link that appears later is not followed
/// either: the partial file is opened with O_NOFOLLOW in a directory that is held open, and renaming replaces a link.
class OutputFile {
 public:
  /// Throws Error output_is_input, output_exists, cannot_write (directory, device, link, missing or read-only folder,
  /// read-only file, path too long), output_locked, write_failed (no room for a new file).
  explicit OutputFile(std::filesystem::path path, const OutputOptions& options = {});
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Appends bytes. Throws Error write_failed, after removing the partial file.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  std::uint64_t bytes_written() const { return written_; }
  const std::filesystem::path& path() const { return path_; }

  /// Puts the file on the disk (fsync) and under its name. Throws Error write_failed; output_exists when, without
  /// `force`, another program made a file of that name meanwhile.
  void commit();

 private:
  friend void discard_partial_outputs() noexcept;
  void open_standard();
  void open_directory();
  void open_partial();
  void check_target(const OutputOptions& options) const;
  void flush();
  void publish();
  void discard() noexcept;
  [[noreturn]] void fail_writing(const char* call, int error_number);

  std::filesystem::path path_;
  std::string name_;          // last component of path_
  std::string partial_name_;  // beside it
  bool force_ = false;
  bool standard_ = false;     // stdout, and not a file
  bool reader_left_ = false;  // of stdout
  int directory_ = -1;        // file descriptor, -1: closed
  int file_ = -1;
  std::string buffer_;
  std::uint64_t written_ = 0;
};

/// Writes a whole file: an OutputFile with one write() and commit().
void write_file(const std::filesystem::path& path, std::string_view content, const OutputOptions& options = {});

}  // namespace tmaops::io
