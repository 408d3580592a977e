// Threads that look for a change: at a flag, a barrier, the clock. Others go on meanwhile, and where nothing changes
// the launch ends.
#include "executor/polling.hpp"

#include "executor/state.hpp"

namespace tmaops::executor {
namespace {

/// Since the thread went on.
struct Turn {
  const void* first = nullptr;
  std::uint64_t accesses = 0, of_the_first = 0;
};
Turn turn;
constexpr std::uint64_t kAccessesOfTurn = 8192;
constexpr std::uint64_t kMostAccessesInVain = 1 << 19;  // of each thread, and of
constexpr std::uint64_t kMostInVain = 1 << 26;          // all: a few seconds

}  // namespace

/// All threads that can go on have looked in vain, more than once.
bool all_poll() { return launch->polls > 4 * launch->ready.size(); }

void begin_turn() { turn = {}; }

void poll(std::uint64_t cost, const std::function<std::string()>& text, const void* place) {
  ++launch->polls;
  launch->in_vain += cost;
  if (launch->in_vain > std::min(kMostInVain, (launch->ready.size() + 1) * kMostAccessesInVain)) {
    report(Rule::never_completes, text() + ", and nothing else happens", place);
    leave();
  }
  pause();
}

void count_access(const void* pointer, const void* place) {
  if (turn.accesses++ == 0) turn.first = pointer;
  if (pointer == turn.first) ++turn.of_the_first;
  if (turn.accesses < kAccessesOfTurn) return;
  const bool looks = turn.of_the_first >= kAccessesOfTurn / 16;
  const Place at = place_of(turn.first);
  turn = {};
  if (!looks) return;
  poll(
      kAccessesOfTurn,
      [&] {
        return at.block != nullptr ? "it reads " + spot(at.address) + " again and again"
                                   : "it reads a word of global memory again and again (blocks that wait for a later "
                                     "block wait forever: they run one after another)";
      },
      place);
}

void note_progress() { launch->polls = launch->in_vain = 0; }

std::int64_t cycles() {
  const Entry entry;
  launch->steps += 100;  // time goes on for who looks at it, and will give up
  launch->in_vain = 0;
  yield();
  return launch->steps;
}

void sleep() {
  const Entry entry;
  poll(kAccessesOfTurn, [] { return "it sleeps again and again"; }, TMAOPS_PLACE);
}

}  // namespace tmaops::executor
