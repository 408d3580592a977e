// `tmaops wgmma`: how a tile of 16-bit elements lies in shared memory for wgmma, which tensor loads bring it there, and
// the descriptor by which wgmma finds it. It needs no GPU. The layouts are those of src/device/wgmma_descriptor.cuh.
#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/tile_picture.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "offers/console.hpp"
#include "offers/output_file.hpp"
#include "tma/sizes.hpp"

namespace tmaops::cli {
namespace {

struct WgmmaOptions {
  std::string tile, major = "k", swizzle = "128B", svg;
  bool force = false;
};

struct Operand {
  std::int64_t mn = 0, k = 0;  // elements; mn is the index that is not summed over
  bool k_major = true;
  tma::Swizzle swizzle{};
  tma::TensorMapSpec load{};  // brings a panel; the panels follow each other
  std::int64_t panels = 0, panel_bytes = 0;
  std::int64_t leading = 0, stride = 0;  // bytes
  std::string leading_text, stride_text;
  std::vector<std::int64_t> steps{};  // bytes from the tile to the operand of each 16 elements of k
  std::uint64_t descriptor = 0;       // without the address
};

[[noreturn]] void refuse(std::string_view option, const std::string& got, const std::string& needed) {
  fail(ErrorCode::usage, "wgmma: --" + std::string(option), "'" + display_text(got) + "'", needed);
}

/// Rows of the panel and the number of panels; a row is as wide as the swizzle, or 16 bytes.
void set_panels(Operand& operand, std::int64_t width) {
  const auto [across, down] = operand.k_major ? std::pair(operand.k, operand.mn) : std::pair(operand.mn, operand.k);
  operand.load = tma::tiled_spec(tma::ElementType::f16, {across, down}, {width, down});
  operand.load.swizzle = operand.swizzle;
  operand.panels = across / width;
  operand.panel_bytes = width * 2 * down;
}

Operand to_operand(const WgmmaOptions& options) {
  Operand operand;
  const std::vector<std::string> parts = split_list(options.tile, 'x');
  const auto parse = [](const std::string& text, std::int64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  if (parts.size() != 2 || !parse(parts[0], operand.mn) || !parse(parts[1], operand.k))
    refuse("tile", options.tile, "MNxK: rows of A or columns of B, then elements of k, for example 64x64");
  if (options.major != "k" && options.major != "mn") refuse("major", options.major, "k or mn");
  operand.k_major = options.major == "k";
  const auto swizzle = tma::parse_swizzle(options.swizzle);
  if (!swizzle || *swizzle > tma::Swizzle::b128) refuse("swizzle", options.swizzle, "none, 32B, 64B or 128B");
  operand.swizzle = *swizzle;
  const bool plain = operand.swizzle == tma::Swizzle::none;
  const std::int64_t width = plain ? 8 : tma::span_of(operand.swizzle) / 2;
  const std::int64_t of_mn = operand.k_major ? 8 : width,
                     of_k = operand.k_major ? std::max<std::int64_t>(16, width) : 16;
  if (operand.mn < of_mn || operand.mn > 256 || operand.mn % of_mn != 0 || operand.k < of_k || operand.k > 256 ||
      operand.k % of_k != 0)
    refuse("tile", options.tile,
           "multiples of " + std::to_string(of_mn) + " (mn) and " + std::to_string(of_k) +
               " (k) up to 256, with --major " + options.major + " --swizzle " + options.swizzle);
  set_panels(operand, width);

  const std::int64_t atom = 8 * width * 2;  // eight rows
  if (plain) {
    operand.leading = operand.k_major ? operand.panel_bytes : atom;
    operand.stride = operand.k_major ? atom : operand.panel_bytes;
    operand.leading_text = "to the next 8 elements of k";
    operand.stride_text = "to the next 8 elements of mn";
  } else if (operand.k_major) {
    operand.leading = 16;
    operand.stride = atom;
    operand.leading_text = "not used in this layout";
    operand.stride_text = "to the next 8 elements of mn";
  } else {
    operand.leading = operand.panel_bytes;
    operand.stride = atom;
    operand.leading_text = "to the next " + std::to_string(width) + " elements of mn";
    operand.stride_text = "to the next 8 elements of k";
  }
  for (std::int64_t k = 0; k < operand.k; k += 16)
    operand.steps.push_back(operand.k_major ? k / width * operand.panel_bytes + k % width * 2 : k * width * 2);
  const std::uint64_t mode = plain                                   ? 0
                             : operand.swizzle == tma::Swizzle::b128 ? 1
                             : operand.swizzle == tma::Swizzle::b64  ? 2
                                                                     : 3;
  operand.descriptor = static_cast<std::uint64_t>(operand.leading / 16) << 16 |
                       static_cast<std::uint64_t>(operand.stride / 16) << 32 | mode << 62;
  return operand;
}

std::string text_of(const Operand& operand, const Picture& picture, bool color) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const auto field = [&](std::string_view bits, std::string_view name, std::int64_t value, const std::string& words) {
    std::string line = "  " + std::string(bits);
    line.resize(14, ' ');
    line += name;
    line.resize(40, ' ');
    return line + std::to_string(value) + (words.empty() ? "" : ": " + words) + "\n";
  };
  std::string text = "operand     " + number(operand.mn) + " x " + number(operand.k) + " (mn x k) of 16 bits, " +
                     (operand.k_major ? "k" : "mn") + " contiguous: " + number(operand.panels * operand.panel_bytes) +
                     " B at a multiple of " + number(tma::swizzle_period(operand.swizzle)) + "\n";
  text += "loads       " + number(operand.panels) +
          (operand.panels == 1 ? "" : ", each " + number(operand.panel_bytes) + " B behind the one before,") +
          " of --box " + tma::comma_list(operand.load.box) +
          (operand.swizzle == tma::Swizzle::none ? "" : " --swizzle " + std::string(to_string(operand.swizzle))) + "\n";
  text += "descriptor  " + tma::hex(operand.descriptor) + " + (address >> 4)\n";
  text += field("bits 0-13", "address / 16", 0, "that of the tile, with the step's bytes added");
  text += field("bits 16-29", "leading byte offset / 16", operand.leading / 16,
                number(operand.leading) + " B, " + operand.leading_text);
  text += field("bits 32-45", "stride byte offset / 16", operand.stride / 16,
                number(operand.stride) + " B, " + operand.stride_text);
  text += field("bits 49-51", "base offset", 0, "the tile starts in phase with its swizzle");
  text += field("bits 62-63", "swizzle", static_cast<std::int64_t>(operand.descriptor >> 62),
                std::string(to_string(operand.swizzle)));
  text += "steps of k  16 elements each, bytes to add to the address: " + joined(operand.steps) + "\n";
  text += "\nThe first load in shared memory, 128 bytes a line; a cell is 16 bytes, named by its first element (" +
          std::string(operand.k_major ? "k,mn" : "mn,k") + "):\n";
  return text + picture_text(picture, color);
}

std::string json_of(const Operand& operand) {
  const nlohmann::ordered_json json{{"mn", operand.mn},
                                    {"k", operand.k},
                                    {"major", operand.k_major ? "k" : "mn"},
                                    {"swizzle", to_string(operand.swizzle)},
                                    {"box", operand.load.box},
                                    {"loads", operand.panels},
                                    {"load_bytes", operand.panel_bytes},
                                    {"alignment", tma::swizzle_period(operand.swizzle)},
                                    {"leading_bytes", operand.leading},
                                    {"stride_bytes", operand.stride},
                                    {"step_bytes", operand.steps},
                                    {"descriptor", tma::hex(operand.descriptor)}};
  return json.dump(2) + "\n";
}

int run(const Globals& globals, const WgmmaOptions& options) {
  const Operand operand = to_operand(options);
  const Picture picture = draw(operand.load, {std::vector<std::int64_t>(2), 0});
  print_data(globals.json ? json_of(operand) : text_of(operand, picture, use_color(globals, Stream::data)));
  if (!options.svg.empty()) {
    const std::string title = "--tile " + options.tile + " --major " + options.major + " --swizzle " + options.swizzle +
                              ": cells are named " + (operand.k_major ? "k,mn" : "mn,k");
    io::write_file(options.svg, picture_svg(picture, title), {.force = options.force});
    print_note(globals, "wrote " + display(options.svg));
  }
  return 0;
}

}  // namespace

void add_wgmma_command(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<WgmmaOptions>();
  CLI::App* command = app.add_subcommand("wgmma", "Show the layout and the descriptor of an operand of wgmma");
  command->add_option("--tile", options->tile, "Rows of A or columns of B, and elements of k: 64x64")
      ->type_name("MNxK")
      ->required();
  command->add_option("--major", options->major, "Which of the two is contiguous [k]")->type_name("{k,mn}");
  command->add_option("--swizzle", options->swizzle, "Of the tensor load that brings the tile [128B]")
      ->type_name("{none,32B,64B,128B}");
  command->add_option("--svg", options->svg, "Write the picture of the tile to FILE")->type_name("FILE");
  command->add_flag("-f,--force", options->force, "Replace FILE when it exists");
  command->footer("Example: tmaops wgmma --tile 64x64 --major k --swizzle 128B\ndocs/wgmma.md explains it.");
  set_run(*command, globals, [&globals, options] { return run(globals, *options); });
}

}  // namespace tmaops::cli
