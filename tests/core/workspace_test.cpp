// Memory of calls and plans from a caller's allocator.
#include "core/workspace.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/work.hpp"
#include "support/expect_error.hpp"

namespace tmaops {
namespace {

constexpr Device kGpu{DeviceType::cuda, 0};

/// Hands out addresses that nobody reads, and takes notes.
struct Notes {
  std::vector<std::size_t> allocated;
  std::vector<void*> released;
  std::vector<Stream> streams;
  bool empty = false;

  Allocator allocator() {
    return {.context = this,
            .allocate = [](void* context, std::size_t bytes, Stream stream) -> void* {
              auto& notes = *static_cast<Notes*>(context);
              if (notes.empty) return nullptr;
              notes.allocated.push_back(bytes);
              notes.streams.push_back(stream);
              return reinterpret_cast<void*>(notes.allocated.size() * 4096);
            },
            .release =
                [](void* context, void* memory, std::size_t, Stream stream) {
                  static_cast<Notes*>(context)->released.push_back(memory);
                  static_cast<Notes*>(context)->streams.push_back(stream);
                }};
  }
};

TEST(Workspace, takes_memory_from_the_allocator_and_gives_it_back_on_the_same_stream) {
  Notes notes;
  int stream = 0;
  for (const auto use : {Workspace::Use::call, Workspace::Use::plan}) {
    notes = {};
    {
      Workspace workspace(kGpu, notes.allocator(), &stream, use);
      Work work("toy", kGpu, &workspace);
      EXPECT_EQ(work.allocate(1), reinterpret_cast<unsigned char*>(4096));
      EXPECT_EQ(work.allocate(257), reinterpret_cast<unsigned char*>(8192));
      EXPECT_EQ(workspace.bytes(), 256 + 512);
      EXPECT_TRUE(notes.released.empty());
    }
    EXPECT_EQ(notes.allocated, (std::vector<std::size_t>{256, 512})) << "whole units of 256 bytes";
    EXPECT_EQ(notes.released, (std::vector<void*>{reinterpret_cast<void*>(8192), reinterpret_cast<void*>(4096)}));
    EXPECT_EQ(notes.streams, std::vector<Stream>(4, &stream));
  }
}

TEST(Workspace, hands_the_same_memory_out_again_to_a_plan_that_is_bound_anew) {
  Notes notes;
  Workspace workspace(kGpu, notes.allocator(), nullptr, Workspace::Use::plan);
  void* const first = workspace.allocate(100, "a");
  void* const second = workspace.allocate(1000, "a");
  workspace.rewind();
  EXPECT_EQ(workspace.allocate(100, "a"), first);
  EXPECT_EQ(workspace.allocate(1000, "a"), second);
  EXPECT_EQ(notes.allocated.size(), 2);
  workspace.rewind();
  test::expect_error(ErrorCode::internal, [&] { workspace.allocate(5000, "a"); }, "as when the plan was made");
}

TEST(Workspace, counts_without_allocating) {
  Workspace workspace(kGpu, {}, nullptr, Workspace::Use::count);
  EXPECT_NE(workspace.allocate(1, "a"), nullptr);
  EXPECT_NE(workspace.allocate(300, "a"), nullptr);
  EXPECT_EQ(workspace.bytes(), 256 + 512);
}

TEST(Workspace, says_when_the_allocator_has_nothing) {
  Notes notes;
  notes.empty = true;
  {
    Workspace workspace(kGpu, notes.allocator(), nullptr, Workspace::Use::call);
    test::expect_error(ErrorCode::device_out_of_memory, [&] { workspace.allocate(1, "attention"); }, "attention");
  }
  EXPECT_TRUE(notes.released.empty());
}

TEST(Workspace, an_allocator_has_both_functions_or_neither) {
  Notes notes;
  Allocator half = notes.allocator();
  half.release = nullptr;
  test::expect_error(
      ErrorCode::bad_parameter, [&] { Workspace(kGpu, half, nullptr, Workspace::Use::call); },
      "allocate without release");
  half = notes.allocator();
  half.allocate = nullptr;
  test::expect_error(
      ErrorCode::bad_parameter, [&] { Workspace(kGpu, half, nullptr, Workspace::Use::call); },
      "release without allocate");
}

}  // namespace
}  // namespace tmaops
