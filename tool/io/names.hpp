// Arrays, columns and times are those of src/recording. Here they are read from files and written to them.
#pragma once

#include "recording/array.hpp"
#include "recording/arrays.hpp"
#include "recording/column_rules.hpp"
#include "recording/decimal.hpp"
#include "recording/iso_time.hpp"
#include "recording/recording.hpp"
#include "recording/time_names.hpp"
#include "recording/times.hpp"

namespace tmaops::io {

using namespace recording;  // NOLINT(google-build-using-namespace): the folder works on them

}  // namespace tmaops::io
