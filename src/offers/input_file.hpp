// Reading whole files into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tmaops::io {

/// Bytes owned together with their number. Copies share the memory.
struct Bytes {
  std::shared_ptr<const std::byte[]> data{};
  std::size_t size = 0;

  std::span<const std::byte> span() const { return {data.get(), size}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data.get()), size}; }
};

/// Whether a path is "-", which means standard input or output. A file of that name is "./-".
bool is_standard(const std::filesystem::path& path);
/// The name of an input in messages: its path, or "stdin".
std::string input_name(const std::filesystem::path& path);

/// Reads a regular file or a pipe, or all of stdin for "-". It does not map the file: when another process shortened a
/// mapped file, this process would end. Throws Error cannot_read (missing, directory, device, not allowed; stdin a
/// second time), out_of_memory.
Bytes read_file(const std::filesystem::path& path);

}  // namespace tmaops::io
