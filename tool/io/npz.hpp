// npz: a zip archive of npy arrays, as numpy.savez writes it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/names.hpp"
#include "io/zip_reader.hpp"
#include "io/zip_writer.hpp"
#include "offers/output_file.hpp"

namespace tmaops::io {

/// An npz file. Opening it checks the archive, and reading an array checks that array. A <u2 array whose name ends in
/// ".bf16" is bfloat16. Members without the extension .npy are not listed.
class NpzReader {
 public:
  /// Throws the errors of read_file and ZipReader.
  explicit NpzReader(const std::filesystem::path& path, ZipLimits limits = {});
  NpzReader(Bytes file, std::string where, ZipLimits limits = {});

  /// Names of the arrays in the order of the archive, without ".npy".
  std::vector<std::string> names() const;
  /// Throws Error array_missing, which lists the names of all arrays, and the errors of ZipReader::read and parse_npy.
  Array read(std::string_view name) const;

 private:
  std::string where_;
  ZipReader zip_;
};

/// Code points of the longest text of a ragged array, at least 1.
std::size_t longest_text(const Array& array);

/// Writes an npz file that numpy.load reads.
class NpzWriter {
 public:
  explicit NpzWriter(OutputFile& file, bool deflate = false) : zip_(file), deflate_(deflate) {}
  /// A ragged array becomes <U#, where # is the longest of its texts in code points.
  void add(const std::string& name, const Array& array);
  void finish() { zip_.finish(); }

 private:
  ZipWriter zip_;
  bool deflate_;
};

}  // namespace tmaops::io
