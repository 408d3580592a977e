// `tmaops tensormap`: whether a TMA descriptor is valid, what would be valid instead, and where a load puts its bytes.
// It needs no GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/tile_picture.hpp"
#include "tma/im2col.hpp"
#include "tmaops/tensor_map.hpp"

namespace tmaops::cli {

/// The options as they were typed. Lists are innermost dimension first, separated by commas.
struct TensorMapOptions {
  std::string dtype = "f16";
  std::string dims;
  std::string box;
  std::string strides;
  std::string element_strides;
  std::string interleave = "none";
  std::string swizzle = "none";
  std::string l2_promotion = "none";
  std::string fill = "zero";
  std::string address;
  std::string lower_corner;
  std::string upper_corner;
  std::string channels_per_pixel;
  std::string pixels_per_column;
  std::string filter;  // of a convolution: the corners follow from these four
  std::string padding;
  std::string convolution_strides;
  std::string dilation;
  std::string offsets;
  std::string architecture = "9.0";
  std::string at;
  std::string base = "0";
  std::string svg;
  std::string dump;
  bool gather4 = false;
  bool force = false;
  bool rules = false;
};

/// The specification that the options describe; missing strides are those of a dense tensor. Throws Error usage, naming
/// the option.
tma::TensorMapSpec to_spec(const TensorMapOptions& options);
/// 90 for "9.0". Throws Error usage.
int to_compute_capability(const std::string& text);
/// Where the load is to begin: --at (all zero when it is missing) and --base.
tma::TileLoad to_load(const TensorMapOptions& options, const tma::TensorMapSpec& spec);

/// A tensor map in a framework's log.
struct DumpedMap {
  std::size_t line = 0;  // where it begins
  tma::TensorMapSpec spec{};
  bool null_address = false;
};
struct Dump {
  std::vector<DumpedMap> maps{};        // each once
  std::vector<std::string> not_read{};  // maps of which lines are missing or torn
  std::vector<int> codes{};             // the driver's answers that the log names
};
/// Throws Error usage where no map can be read, naming the line of the first.
Dump read_dump(const std::string& text);

/// The result of the command.
struct TensorMapAnswer {
  tma::TensorMapSpec spec;
  int compute_capability = tma::kHopper;
  bool load_given = false;    // --at, --base or --offsets
  bool null_address = false;  // --address 0
  bool gather4 = false;
  tma::Report report;
  tma::TileLoad load;
  tma::Report load_report;            // empty while the map is not valid
  std::optional<Picture> picture;     // of the load; missing when the map or the load is not valid
  std::string not_modelled;           // why there is no picture of a valid load
  std::vector<std::int64_t> offsets;  // im2col: of the filter's tap
  std::vector<tma::Pixel> pixels;     // im2col: what the load brings
  std::int64_t barrier_bytes = 0;     // of a valid map
  int column_bytes = 16;              // 8 where a swizzle flips the halves of 16 bytes
  int column_wavefronts = 0;          // of 8 lanes that read so many bytes each of 8 successive rows
  int column_lanes = 0;
  bool valid() const { return report.valid() && load_report.valid() && !null_address; }
};
TensorMapAnswer examine(const TensorMapOptions& options);
/// The same for a map of a dump: of the options it takes the architecture and the load.
TensorMapAnswer examine(const DumpedMap& map, const TensorMapOptions& options);

/// The question as options: the specification, --arch where it is not 9.0, --at and --base where they were given.
std::string command_line(const TensorMapAnswer& answer);
/// The proposal as options, with the coordinates in its order of dimensions. The load is left out where it would fault
/// in the proposed map too. Empty where there is no proposal.
std::string proposal_line(const TensorMapAnswer& answer);

/// The rules as the table of docs/tma.md: Markdown, one row per rule.
std::string rules_table();
std::string text_of(const TensorMapAnswer& answer, bool color, bool picture = true);
std::string json_of(const TensorMapAnswer& answer);
std::string text_of(const Dump& dump, const std::vector<TensorMapAnswer>& answers, bool color);
std::string json_of(const Dump& dump, const std::vector<TensorMapAnswer>& answers);

}  // namespace tmaops::cli
