// Plans that are bound to other memory: what they refuse, and what they ask a variant for.
#include "core/plan.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "core/choose.hpp"
#include "support/expect_error.hpp"

namespace tmaops::plan_test {
namespace {

constexpr Device kGpu{DeviceType::cuda, 0};

struct Problem {
  std::string text() const { return "toy"; }
};
struct Arguments {
  const int* from = nullptr;
  int* to = nullptr;
  Workspace* workspace = nullptr;
};

/// What a variant was asked for.
struct Asked {
  Arguments arguments;
  void* scratch;
};
std::vector<Asked>& asked() {
  static std::vector<Asked> all;
  return all;
}

Work copy_one(const Problem&, const Arguments& arguments, const OneWay&) {
  asked().push_back({arguments, arguments.workspace->allocate(1000, "toy")});
  return Work([arguments] { *arguments.to = *arguments.from; });
}
const Variant<Problem, Arguments, OneWay> kToy{"toy", "copy", DeviceType::cuda, "any",    "",
                                               {},    "",     nullptr,          copy_one, nullptr};

/// As if they were on a GPU; the work of the toy runs here.
Plan plan(const int* from, int* to, const Allocator& allocator) {
  const Choice<Problem, Arguments, OneWay> choice{&kToy, {}};
  return make_plan(
      choice, Problem{}, Arguments{.from = from, .to = to}, {.device = kGpu, .allocator = allocator},
      {{"from", view(from, {1}, kGpu), [](Arguments& at, void* data) { at.from = static_cast<int*>(data); }},
       {"to", view(to, {1}, kGpu), [](Arguments& at, void* data) { at.to = static_cast<int*>(data); }, true},
       {"absent", {}, [](Arguments&, void*) { FAIL(); }}});
}

struct Memory {
  int allocated = 0;
  int held = 0;
  Allocator allocator() {
    return {.context = this,
            .allocate = [](void* context, std::size_t, Stream) -> void* {
              auto& memory = *static_cast<Memory*>(context);
              ++memory.held;
              return reinterpret_cast<void*>(static_cast<std::uintptr_t>(256 * ++memory.allocated));
            },
            .release = [](void* context, void*, std::size_t, Stream) { --static_cast<Memory*>(context)->held; }};
  }
};

TEST(PlanRebind, asks_the_variant_again_with_the_memory_of_the_plan) {
  alignas(128) int from[32] = {7};
  alignas(128) int others[64] = {8};
  alignas(128) int to[32] = {};
  asked().clear();
  Memory memory;
  {
    Plan made = plan(from, to, memory.allocator());
    made.run();
    EXPECT_EQ(to[0], 7);
    made.rebind({others, others + 32});
    EXPECT_EQ(others[32], 0) << "nothing runs by itself";
    made.run();
    EXPECT_EQ(others[32], 8);
    ASSERT_EQ(asked().size(), 2);
    EXPECT_EQ(asked()[1].arguments.from, others);
    EXPECT_EQ(asked()[1].scratch, asked()[0].scratch);
    EXPECT_EQ(memory.allocated, 1);
    EXPECT_EQ(memory.held, 1);
  }
  EXPECT_EQ(memory.held, 0);
}

TEST(PlanRebind, refuses_by_name_what_does_not_fit) {
  alignas(128) int from[64] = {7};
  alignas(128) int to[64] = {};
  Memory memory;
  Plan made = plan(from + 4, to, memory.allocator());  // at multiples of 16 and 128 bytes
  test::expect_error(ErrorCode::bad_parameter, [&] { made.rebind({from}); }, "toy: rebind", "2: from, to");
  test::expect_error(ErrorCode::null_pointer, [&] { made.rebind({from, nullptr}); }, "toy: to");
  test::expect_error(
      ErrorCode::misaligned, [&] { made.rebind({from + 2, to}); }, "toy: from", "a multiple of 8 bytes",
      "a multiple of 16, as when the plan was made");
  test::expect_error(ErrorCode::misaligned, [&] { made.rebind({from, to + 16}); }, "toy: to", "64 bytes", "128");
  test::expect_error(ErrorCode::overlap, [&] { made.rebind({to, to}); }, "toy: to", "from uses");
  made.run();
  EXPECT_EQ(to[0], from[4]);
  from[32] = 9;
  made.rebind({from + 32, to + 32});  // a better alignment is taken
  made.run();
  EXPECT_EQ(to[32], 9);
}

TEST(WorkspaceBytes, are_what_a_variant_asks_for) {
  const Choice<Problem, Arguments, OneWay> choice{&kToy, {}};
  Arguments arguments;
  EXPECT_EQ(workspace_bytes(choice, Problem{}, arguments, {.device = kGpu}), 1024);
}

}  // namespace
}  // namespace tmaops::plan_test
