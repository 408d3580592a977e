// The threads of shuffled_samples: for the kernel and for its configurations.
#pragma once

namespace tmaops::ops::ms_deform_attn::shuffled_samples {

inline constexpr int kThreads = 768;       // of a block, one per multiprocessor: 80 registers
inline constexpr int kManyThreads = 1024;  // of one with many queries of 32 channels: 64 registers
inline constexpr int kFusedThreads = 640;  // of one whose call has fused steps: 96 registers
inline constexpr int kSplitThreads = 128;  // with groups
inline constexpr int kSplitBits = 2;       // log2 of the groups of threads that share an item, where there are several
/// Up to channels of 128 bytes a warp has room for the groups.
inline constexpr int kMostSplitLaneBits = 5 - kSplitBits;
/// With groups: their levels take more registers, and few blocks run anyway.
inline constexpr int kSplitBlocksPerMultiprocessor = 4;

}  // namespace tmaops::ops::ms_deform_attn::shuffled_samples
