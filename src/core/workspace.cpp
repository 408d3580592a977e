#include "core/workspace.hpp"

#include <string>

#include "core/work_device.hpp"
#include "tmaops/error.hpp"

namespace tmaops {
namespace {

constexpr std::size_t kUnit = 256;  // bytes

}  // namespace

Workspace::Workspace(Device device, const Allocator& allocator, Stream stream, Use use)
    : device_(device), allocator_(allocator), stream_(stream), use_(use) {
  if ((allocator.allocate == nullptr) != (allocator.release == nullptr))
    throw Error(ErrorCode::bad_parameter,
                {.where = "allocator",
                 .got = allocator.allocate == nullptr ? "release without allocate" : "allocate without release",
                 .needed = "both functions, or neither"});
}

Workspace::~Workspace() {
  if (use_ == Use::count) return;
  for (auto piece = pieces_.rbegin(); piece != pieces_.rend(); ++piece) {
    if (allocator_.release != nullptr)
      allocator_.release(allocator_.context, piece->at, piece->bytes, stream_);
    else
      release_on_device(device_, piece->at, stream_);
  }
}

void* Workspace::allocate(std::size_t bytes, std::string_view where) {
  bytes = (bytes + kUnit - 1) / kUnit * kUnit;
  if (used_ < pieces_.size()) {
    const Piece& piece = pieces_[used_++];
    if (piece.bytes != bytes)
      throw Error(ErrorCode::internal, {.where = std::string(where),
                                        .got = std::to_string(bytes) + " B of memory",
                                        .needed = std::to_string(piece.bytes) + " B, as when the plan was made"});
    return piece.at;
  }
  pieces_.reserve(pieces_.size() + 1);  // what is allocated is never lost
  void* at = nullptr;
  if (use_ == Use::count) {
    at = reinterpret_cast<void*>(kUnit);  // never read or written
  } else if (allocator_.allocate != nullptr) {
    at = allocator_.allocate(allocator_.context, bytes, stream_);
  } else {
    // A plan's memory is that of no call's stream, since its runs may be on any.
    if (use_ == Use::plan) stream_ = stream_of_plans(device_);
    at = allocate_on_device(device_, bytes, stream_, where);
  }
  if (at == nullptr)
    throw Error(
        ErrorCode::device_out_of_memory,
        {.where = std::string(where), .got = "null from the allocator", .needed = std::to_string(bytes) + " B"});
  pieces_.push_back({at, bytes});
  used_ = pieces_.size();
  return at;
}

std::size_t Workspace::bytes() const {
  std::size_t sum = 0;
  for (const Piece& piece : pieces_) sum += piece.bytes;
  return sum;
}

}  // namespace tmaops
