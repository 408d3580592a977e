// Everything tmaops offers.
#pragma once

#include "tmaops/dtype.hpp"
#include "tmaops/error.hpp"
#include "tmaops/export.hpp"
#include "tmaops/gemm.hpp"
#include "tmaops/ms_deform_attn.hpp"
#include "tmaops/plan.hpp"
#include "tmaops/registry.hpp"
#include "tmaops/resample.hpp"
#include "tmaops/tensor.hpp"
#include "tmaops/tensor_map.hpp"
#include "tmaops/threads.hpp"
#include "tmaops/version.hpp"
