// `tmaops tensormap`: whether a TMA descriptor is valid, what would be valid instead, and where a load puts its bytes.
// It needs no GPU.
#pragma once

#include <optional>
#include <string>

#include "tma/picture.hpp"
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
  std::string architecture = "9.0";
  std::string at;
  std::string base = "0";
  std::string svg;
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

/// The result of the command.
struct TensorMapAnswer {
  tma::TensorMapSpec spec;
  int compute_capability = tma::kHopper;
  bool load_given = false;  // --at or --base
  tma::Report report;
  tma::TileLoad load;
  tma::Report load_report;              // empty while the map is not valid
  std::optional<tma::Picture> picture;  // of the load; missing when the map or the load is not valid
  std::string not_modelled;             // why there is no picture of a valid load
  int column_bytes = 16;                // 8 where a swizzle flips the halves of 16 bytes
  int column_wavefronts = 0;            // of 8 lanes that read so many bytes each of 8 successive rows
  int column_lanes = 0;
  bool valid() const { return report.valid() && load_report.valid(); }
};
TensorMapAnswer examine(const TensorMapOptions& options);

/// The question as options: the specification, --arch where it is not 9.0, --at and --base where they were given.
std::string command_line(const TensorMapAnswer& answer);
/// The proposal as options, with the coordinates in its order of dimensions. The load is left out where it would fault
/// in the proposed map too. Empty where there is no proposal.
std::string proposal_line(const TensorMapAnswer& answer);

/// The rules as the table of docs/tma.md: Markdown, one row per rule.
std::string rules_table();
std::string text_of(const TensorMapAnswer& answer, bool color);
std::string json_of(const TensorMapAnswer& answer);

}  // namespace tmaops::cli
