// The bytes that the tests of the device layer bring back are the same on a Hopper and in the executor, where these
// tests run too: device_layer_bytes.tsv has a digest for each test, and both sides are held to it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tmaops::test {

/// FNV-1a of all that the running test has brought back from device memory.
inline std::uint64_t bytes_digest = 0;

inline void note_bytes(const void* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    bytes_digest = (bytes_digest ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3ull;
}

}  // namespace tmaops::test
