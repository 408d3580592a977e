// A ring of stages between one producer, usually a thread that issues TMA, and its consumers.
//
//   producer:  const int stage = producer.acquire();                 // waits until the stage is free
//              producer.expect(stage, bytes); tensor_load(tile[stage], ..., producer.full(stage));
//   consumer:  const int stage = consumer.acquire();                 // waits until the bytes are there
//              ... read tile[stage] ...;  consumer.release(stage);   // may be later than the next acquire
#pragma once

#include "device/barrier.cuh"

namespace tmaops::device {

/// The barriers of a ring, in shared memory. One thread calls init(), and a block or cluster barrier follows.
template <int stages>
struct Ring {
  static_assert(stages >= 1 && stages <= 32, "a pipeline has 1 to 32 stages");
  Barrier full[stages];
  Barrier empty[stages];

  /// `producers` is the number of arrivals that fill a stage: 1 when one thread calls expect(), more when threads fill
  /// it by cp.async. `consumers` is the number of release() calls that free a stage, counted over all blocks of the
  /// cluster that read it.
  __device__ __forceinline__ void init(std::uint32_t producers, std::uint32_t consumers) {
    for (int stage = 0; stage < stages; ++stage) {
      init_barrier(full[stage], producers);
      init_barrier(empty[stage], consumers);
    }
    fence_barrier_init();
  }
};

/// The next stage of a producer or consumer, and the parity of its rounds through the ring.
template <int stages>
class RingPosition {
 public:
  __device__ __forceinline__ int stage() const { return stage_; }
  __device__ __forceinline__ std::uint32_t phase() const { return phase_; }
  __device__ __forceinline__ void advance() {
    if (++stage_ == stages) {
      stage_ = 0;
      phase_ ^= 1u;
    }
  }
  /// Advances `count` times.
  __device__ __forceinline__ void advance(int count) {
    stage_ += count % stages;
    phase_ ^= static_cast<std::uint32_t>(count / stages) & 1u;
    if (stage_ >= stages) {
      stage_ -= stages;
      phase_ ^= 1u;
    }
  }

 private:
  int stage_ = 0;
  std::uint32_t phase_ = 0;
};

template <int stages>
class Producer {
 public:
  __device__ __forceinline__ explicit Producer(Ring<stages>& ring) : ring_(ring) {}

  /// Waits until all consumers have released the next stage, and takes it. In the first round it does not wait.
  __device__ __forceinline__ int acquire() {
    const int stage = position_.stage();
    wait(ring_.empty[stage], position_.phase() ^ 1u, {"an empty stage", stage});
    position_.advance();
    return stage;
  }
  /// The stage is full once these bytes have come. Call it right before issuing the copies.
  __device__ __forceinline__ void expect(int stage, std::uint32_t bytes) {
    arrive_expect_bytes(ring_.full[stage], bytes);
  }
  /// The barrier that the copies complete on.
  __device__ __forceinline__ Barrier& full(int stage) { return ring_.full[stage]; }

 private:
  Ring<stages>& ring_;
  RingPosition<stages> position_;
};

template <int stages>
class Consumer {
 public:
  __device__ __forceinline__ explicit Consumer(Ring<stages>& ring) : ring_(ring) {}

  /// Waits until the next stage is full and takes it.
  __device__ __forceinline__ int acquire() {
    const int stage = position_.stage();
    wait(ring_.full[stage], position_.phase(), {"a full stage", stage});
    position_.advance();
    return stage;
  }
  /// Leaves the next `count` stages to another consumer.
  __device__ __forceinline__ void skip(int count) { position_.advance(count); }
  /// Gives the stage back. One thread per counted consumer calls it, after the other threads of that consumer have
  /// read.
  __device__ __forceinline__ void release(int stage) { arrive(ring_.empty[stage]); }
  /// Gives it back to the producer in block `rank` of the cluster, for stages filled by multicast.
  __device__ __forceinline__ void release_to(int stage, std::uint32_t rank) { arrive_at(ring_.empty[stage], rank); }

 private:
  Ring<stages>& ring_;
  RingPosition<stages> position_;
};

/// Shared memory of a kernel with `stages` stages of type Stage. It does not compile when it is too large.
template <class Stage, int stages>
struct StagedStorage {
  alignas(kDynamicSharedAlignment) Stage stage[stages];
  Ring<stages> ring;
  static_assert(sizeof(Stage) % alignof(Stage) == 0);
  static_assert(sizeof(Stage) * stages + sizeof(Ring<stages>) <= kMaxSharedBytes,
                "the stages need more shared memory than a block can have (227 KiB): fewer stages or smaller tiles");
};

}  // namespace tmaops::device
