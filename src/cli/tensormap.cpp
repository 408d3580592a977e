#include "cli/tensormap.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "io/file_error.hpp"
#include "io/output_file.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

int run(const Globals& globals, const TensorMapOptions& options) {
  if (options.rules) {
    print_data(rules_table());
    return 0;
  }
  if (options.dims.empty())
    throw Error(ErrorCode::usage, {.where = "tensormap: --dims",
                                   .got = "nothing",
                                   .needed = "the tensor's dimensions, innermost first, for example 32,160,92"});
  const TensorMapAnswer answer = examine(options);
  print_data(globals.json ? json_of(answer) : text_of(answer, use_color(globals, Stream::data)));
  if (!options.svg.empty() && answer.picture) {
    io::write_file(options.svg, tma::picture_svg(*answer.picture, command_line(answer)), {.force = options.force});
    print_note(globals, "wrote " + io::display(options.svg));
  } else if (!options.svg.empty()) {
    print_problem("no picture was written to " + io::display(options.svg) + ": there is no load to draw");
  }
  return answer.valid() ? 0 : 1;
}

}  // namespace

void add_tensormap_command(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<TensorMapOptions>();
  CLI::App* command = app.add_subcommand("tensormap", "Check a TMA descriptor and show what a load puts where");
  const auto list = [&](const char* name, std::string& value, const char* help) {
    command->add_option(name, value, help)->type_name("N,N,...");
  };
  command->add_option("--dtype", options->dtype, "Element type: u8 ... f64, bf16, tf32, or CUDA's name [f16]")
      ->type_name("TYPE");
  list("--dims", options->dims, "Elements of the tensor along each dimension, innermost first");
  list("--box", options->box, "Elements of the box that one load brings, innermost first");
  list("--strides", options->strides, "Bytes from element to element of dimensions 1, 2, ... [dense]");
  list("--element-strides", options->element_strides, "Load every n-th element along each dimension [1]");
  command->add_option("--swizzle", options->swizzle, "How the rows of 16 bytes are moved in shared memory [none]")
      ->type_name("{none,32B,64B,128B,128B_ATOM_32B,128B_ATOM_32B_FLIP_8B,128B_ATOM_64B}");
  command->add_option("--interleave", options->interleave, "Layout in slices of channels [none]")
      ->type_name("{none,16B,32B}");
  command->add_option("--l2-promotion", options->l2_promotion, "Bytes fetched to the L2 at once [none]")
      ->type_name("{none,64B,128B,256B}");
  command->add_option("--fill", options->fill, "What lies outside of the tensor [zero]")->type_name("{zero,nan}");
  command->add_option("--address", options->address, "Address of the tensor, to check its alignment")
      ->type_name("ADDRESS");
  list("--lower-corner", options->lower_corner, "im2col: offsets of the window's first corner, W first");
  list("--upper-corner", options->upper_corner, "im2col: offsets of the window's last corner, W first");
  command->add_option("--channels-per-pixel", options->channels_per_pixel, "im2col: elements of every pixel")
      ->type_name("N");
  command->add_option("--pixels-per-column", options->pixels_per_column, "im2col: pixels of one load")->type_name("N");
  command->add_option("--arch", options->architecture, "Compute capability to check for [9.0]")->type_name("X.Y");
  list("--at", options->at, "Coordinates of the load, innermost first, may be negative [0,0,...]");
  command->add_option("--base", options->base, "Address of the destination in shared memory [0]")->type_name("ADDRESS");
  command->add_option("--svg", options->svg, "Write the picture of the tile to FILE")->type_name("FILE");
  command->add_flag("-f,--force", options->force, "Replace FILE when it exists");
  command->add_flag("--rules", options->rules, "Print the table of all rules");
  command->footer(
      "Example: tmaops tensormap --dtype f16 --dims 32,160,92 --box 32,2,2 --swizzle 64B --at 0,-1,3\n"
      "Ends with 0 when map and load are valid, 1 when not. docs/tma.md explains it all.");
  command->callback([&globals, options] { globals.run = [&globals, options] { return run(globals, *options); }; });
}

}  // namespace tmaops::cli
