// Device memory that a call needs beside its tensors: scratch, and tables that were made on the host.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "tmaops/allocator.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops {

/// The memory of one call or plan. A variant's plan() asks for it through Work::allocate().
class Workspace {
 public:
  /// call: released when it ends, in the order of its stream. plan: kept for all runs, on any stream.
  /// count: nothing is allocated, bytes() tells what a call would need.
  enum class Use { call, plan, count };

  /// Throws Error bad_parameter when the allocator has one of its functions without the other.
  Workspace(Device device, const Allocator& allocator, Stream stream, Use use);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Memory at a multiple of 256 bytes. Throws Error device_out_of_memory; `where` is its place.
  void* allocate(std::size_t bytes, std::string_view where);
  /// From here on allocate() hands out the same memory again, in the same order, to a plan that is bound anew.
  void rewind() { used_ = 0; }
  /// What was asked for, each piece rounded up to 256 bytes.
  std::size_t bytes() const;
  /// The stream in whose order the memory comes.
  Stream stream() const { return stream_; }

 private:
  struct Piece {
    void* at;
    std::size_t bytes;
  };

  Device device_;
  Allocator allocator_;
  Stream stream_;
  Use use_;
  std::vector<Piece> pieces_;
  std::size_t used_ = 0;
};

}  // namespace tmaops
