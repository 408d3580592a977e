// What is known of each byte of shared memory, and the times by which accesses are ordered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tmaops::executor {

/// Time of an agent: it rises whenever the agent lets others know what it has done.
using Clock = std::uint32_t;
/// A thread of the cluster, or one of the slots that asynchronous operations take in turn.
using Agent = std::uint16_t;
inline constexpr std::size_t kSlots = 128;

/// to[i] becomes the larger of the two.
void raise(Clock* to, const Clock* from, std::size_t count);

/// What an agent knows of the others: it is ordered behind everything that agent a did up to time seen[a].
struct Clocks {
  std::vector<Clock> seen;
  std::vector<Clock> fenced;  // the part of `seen` that a proxy fence has covered
  std::vector<Clock>
      reads;  // reads that are over, although `seen` does not say so: a shuffle's operands depend on them

  void reset(std::size_t agents) {
    seen.assign(agents, 0);
    fenced.assign(agents, 0);
    reads.assign(agents, 0);
  }
  void join(const Clocks& other) {
    raise(seen, other.seen);
    raise(fenced, other.fenced);
    raise(reads, other.reads);
  }
  /// join() of what holds all that these hold, but for the latest of the agent's own.
  void take(const Clocks& other, Agent agent) {
    const Clock now = seen[agent];
    *this = other;
    seen[agent] = now;
  }
  static void raise(std::vector<Clock>& to, const std::vector<Clock>& from) {
    tmaops::executor::raise(to.data(), from.data(), from.size());
  }
};

/// Of a byte of shared memory.
enum class ByteState : std::uint8_t { uninitialised, written, in_flight, copied, barrier };

struct Cell {
  const void* write_place = nullptr;
  Clock write_clock = 0;
  Clock read_clock = 0;
  std::uint32_t more_reads = 0;  // number of a list of further readers; 0: none
  Agent writer = 0;
  Agent reader = 0;
  ByteState state = ByteState::uninitialised;
  std::uint8_t readers_in_flight = 0;  // copies and products that are reading it
  std::uint8_t swizzle = 0;            // 1 + tma::Swizzle of the tensor load that wrote it; 0: written otherwise

  bool has_write_of(const Cell& other) const {
    return state == other.state && write_clock == other.write_clock && writer == other.writer;
  }
  bool has_readers_of(const Cell& other) const {
    return read_clock == other.read_clock && reader == other.reader && more_reads == other.more_reads &&
           readers_in_flight == other.readers_in_flight;
  }
  void take_readers_of(const Cell& other) {
    read_clock = other.read_clock;
    reader = other.reader;
    more_reads = other.more_reads;
  }
};

/// The cells of a window. A chunk whose bytes are alike is one unit, with the cell of its first byte: copies and tensor
/// cores meet whole chunks, and a cell for each byte would not fit into a cache.
class Cells {
 public:
  void resize(std::uint32_t bytes) {
    cells_.resize(bytes);
    is_split_.resize(bytes / kChunk);
  }
  /// Of the unit that this byte is in.
  Cell& operator[](std::uint32_t at) { return cells_[first_of(at)]; }
  const Cell& operator[](std::uint32_t at) const { return cells_[first_of(at)]; }
  /// The first byte behind that unit.
  std::uint32_t behind(std::uint32_t at) const { return is_split_[at / kChunk] ? at + 1 : (at / kChunk + 1) * kChunk; }
  /// Splits the units of which these bytes are a part.
  void split(std::uint32_t at, std::uint32_t bytes) {
    if (at % kChunk != 0) split_chunk(at / kChunk);
    if ((at + bytes) % kChunk != 0) split_chunk((at + bytes) / kChunk);
  }
  /// A copy or a product begins to read these bytes, or ends.
  void add_readers_in_flight(std::uint32_t at, std::uint32_t bytes, int more);
  void assign(std::uint32_t at, std::uint32_t bytes, const Cell& cell);

 private:
  static constexpr std::uint32_t kChunk = 16;
  std::uint32_t first_of(std::uint32_t at) const { return is_split_[at / kChunk] ? at : at / kChunk * kChunk; }
  void split_chunk(std::uint32_t chunk);

  std::vector<Cell> cells_;
  std::vector<char> is_split_;  // of each chunk
};

/// Readers of bytes beyond the first. Bytes that are read together share a list.
struct ReadLists {
  struct List {
    std::uint32_t bytes = 0;  // that have it, or had it before a write
    std::vector<std::pair<Agent, Clock>> readers;
  };
  std::vector<List> all{1};
  std::uint32_t used = 1;

  void clear() { used = 1; }
  std::uint32_t add(std::uint32_t bytes);
};

extern ReadLists read_lists;  // of the cluster that runs

}  // namespace tmaops::executor
