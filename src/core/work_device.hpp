// The two ways to run work on a GPU. work_cuda.cpp has them; without a CUDA toolkit work_none.cpp refuses.
#pragma once

#include <memory>

#include "core/work.hpp"

namespace tmaops {

/// Every step once, by the CUDA runtime.
void run_on_device(const Work& work, Stream stream);
std::unique_ptr<const RepeatedWork> repeat_on_device(Work work);

}  // namespace tmaops
