// Makes a descriptor. It checks the rules first, because the driver's only answer is "invalid value".
#include <algorithm>
#include <limits>

#include "core/device_info.hpp"
#include "core/entry.hpp"
#include "core/fail.hpp"
#include "tma/driver.hpp"
#include "tma/sizes.hpp"

namespace tmaops::tma {
namespace {

std::string indented(const std::string& lines) {
  std::string text = lines;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
    text.replace(at, 1, "\n          ");
  return text;
}

thread_local int loaded_device = -1;  // the device that load_driver() was last called for

[[noreturn]] void refuse(const TensorMapSpec& spec, Report report) {
  std::string mend;
  if (report.proposal) mend = report.proposal->change + " is valid:\n          " + report.proposal->spec.text();
  report.proposal.reset();
  report.warnings.clear();
  fail(ErrorCode::bad_tensor_map, spec.text(), indented(report.text()), "a specification that keeps these rules", mend);
}

}  // namespace

bool fits_driver(const TensorMapSpec& spec) {
  const auto within = [](const std::vector<std::int64_t>& values, std::int64_t low, std::int64_t high) {
    return std::ranges::all_of(values, [=](std::int64_t value) { return value >= low && value <= high; });
  };
  constexpr std::int64_t most64 = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t most32 = std::numeric_limits<std::uint32_t>::max();
  const std::size_t rank = spec.dims.size();
  if (rank > 8 || (rank > 0 && spec.strides.size() + 1 != rank)) return false;
  if (!spec.element_strides.empty() && spec.element_strides.size() != rank) return false;
  if (!within(spec.dims, 0, most64) || !within(spec.strides, 0, most64) || !within(spec.element_strides, 0, most32))
    return false;
  if (spec.mode == Mode::tiled) return spec.box.size() == rank && within(spec.box, 0, most32);
  constexpr std::int64_t most_int = std::numeric_limits<int>::max();
  return rank >= 2 && spec.lower_corner.size() == rank - 2 && spec.upper_corner.size() == rank - 2 &&
         within(spec.lower_corner, -most_int, most_int) && within(spec.upper_corner, -most_int, most_int) &&
         spec.channels_per_pixel >= 0 && spec.channels_per_pixel <= most32 && spec.pixels_per_column >= 0 &&
         spec.pixels_per_column <= most32;
}

bool sets_bit_85_wrongly(int compute_capability, int driver_version) {
  return compute_capability >= 100 && driver_version < 13040;
}

void clear_bit_85(const TensorMapSpec& spec, TensorMap& map) {
  constexpr double kSmallAllocation = 128 * 1024;
  double spanned = static_cast<double>(bytes_of(spec.dtype, spec.dims[0]));
  for (std::size_t i = 0; i < spec.strides.size(); ++i)
    spanned += static_cast<double>(spec.dims[i + 1] - 1) * static_cast<double>(spec.strides[i]);
  if (spanned < kSmallAllocation) map.opaque[1] &= ~(std::uint64_t{1} << 21);
}

TensorMap encode(const TensorMapSpec& spec, int device_index) {
  return public_entry("tensor map", [&] {
    if (Report report = check(spec, std::numeric_limits<int>::max()); !report.valid()) refuse(spec, std::move(report));
    if (spec.address == 0)
      fail(ErrorCode::null_pointer, "tensor map: address", "0", "the address of the tensor in GPU memory");
    load_driver(device_index);
    loaded_device = device_index;
    const int capability = device_info({DeviceType::cuda, device_index}).compute_capability;
    if (Report report = check(spec, capability); !report.valid()) refuse(spec, std::move(report));
    TensorMap map;
    if (const DriverAnswer answer = encode_unchecked(spec, map); !answer.accepted())
      fail(ErrorCode::tensor_map_refused, spec.text(), answer.name, "success: every documented rule is kept");
    return map;
  });
}

TensorMap encode_valid(const TensorMapSpec& spec, int device_index) {
  if (loaded_device != device_index) load_driver(device_index);
  loaded_device = device_index;
  TensorMap map;
  return encode_unchecked(spec, map).accepted() ? map : encode(spec, device_index);  // which says what is wrong
}

}  // namespace tmaops::tma
