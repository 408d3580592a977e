#include "cli/tensormap.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "offers/console.hpp"
#include "offers/input_file.hpp"
#include "offers/output_file.hpp"

namespace tmaops::cli {
namespace {

int run_dump(const Globals& globals, const TensorMapOptions& options) {
  if (!options.dims.empty() || !options.box.empty() || !options.svg.empty() || options.gather4)
    fail(ErrorCode::usage, "tensormap: --dump", "--dump beside --dims, --box, --gather4 or --svg",
         "--dump alone, or with --arch: the maps are those of the text");
  const Dump dump = read_dump(std::string(io::read_file(options.dump).text()));
  std::vector<TensorMapAnswer> answers;
  for (const DumpedMap& map : dump.maps) answers.push_back(examine(map, options));
  print_data(globals.json ? json_of(dump, answers) : text_of(dump, answers, use_color(globals, Stream::data)));
  return dump.not_read.empty() && std::ranges::all_of(answers, &TensorMapAnswer::valid) ? 0 : 1;
}

int run(const Globals& globals, const TensorMapOptions& options) {
  if (options.rules) {
    print_data(rules_table());
    return 0;
  }
  if (!options.dump.empty()) return run_dump(globals, options);
  if (options.dims.empty())
    fail(ErrorCode::usage, "tensormap: --dims", "nothing",
         "the tensor's dimensions, innermost first, for example 32,160,92, or --dump with a log");
  const TensorMapAnswer answer = examine(options);
  print_data(globals.json ? json_of(answer) : text_of(answer, use_color(globals, Stream::data)));
  if (!options.svg.empty() && answer.picture) {
    io::write_file(options.svg, picture_svg(*answer.picture, command_line(answer)), {.force = options.force});
    print_note(globals, "wrote " + display(options.svg));
  } else if (!options.svg.empty()) {
    print_problem("no picture was written to " + display(options.svg) + ": there is no load to draw");
  }
  return answer.valid() ? 0 : 1;
}

}  // namespace

void add_tensormap_command(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<TensorMapOptions>();
  CLI::App* command = app.add_subcommand("tensormap", "Check a TMA descriptor and show what a load puts where");
  const auto add = [&](const char* name, std::string& value, const char* type, const char* help) {
    command->add_option(name, value, help)->type_name(type);
  };
  constexpr const char* kList = "N,N,...";
  add("--dtype", options->dtype, "TYPE", "Element type: u8 ... f64, bf16, tf32, or CUDA's name [f16]");
  add("--dims", options->dims, kList, "Elements of the tensor along each dimension, innermost first");
  add("--box", options->box, kList, "Elements of the box that one load brings, innermost first");
  add("--strides", options->strides, kList, "Bytes from element to element of dimensions 1, 2, ... [dense]");
  add("--element-strides", options->element_strides, kList, "Load every n-th element along each dimension [1]");
  add("--swizzle", options->swizzle, "{none,32B,64B,128B,128B_ATOM_32B,128B_ATOM_32B_FLIP_8B,128B_ATOM_64B}",
      "How the rows of 16 bytes are moved in shared memory [none]");
  add("--interleave", options->interleave, "{none,16B,32B}", "Layout in slices of channels [none]");
  add("--l2-promotion", options->l2_promotion, "{none,64B,128B,256B}", "Bytes fetched to the L2 at once [none]");
  add("--fill", options->fill, "{zero,nan}", "What lies outside of the tensor [zero]");
  add("--address", options->address, "ADDRESS", "Address of the tensor, to check its alignment");
  add("--lower-corner", options->lower_corner, kList, "im2col: offsets of the window's first corner, W first");
  add("--upper-corner", options->upper_corner, kList, "im2col: offsets of the window's last corner, W first");
  add("--channels-per-pixel", options->channels_per_pixel, "N", "im2col: elements of every pixel");
  add("--pixels-per-column", options->pixels_per_column, "N", "im2col: pixels of one load");
  add("--filter", options->filter, kList, "im2col: size of the convolution's filter, W first; the corners follow");
  add("--padding", options->padding, kList, "im2col: its padding [0]");
  add("--convolution-strides", options->convolution_strides, kList, "im2col: its strides [1]");
  add("--dilation", options->dilation, kList, "im2col: its dilation [1]");
  add("--offsets", options->offsets, kList, "im2col: the tap that the load is for, times the dilation [0]");
  add("--arch", options->architecture, "X.Y", "Compute capability to check for [9.0]");
  add("--at", options->at, kList, "Coordinates of the load, innermost first, may be negative [0,0,...]");
  add("--base", options->base, "ADDRESS", "Address of the destination in shared memory [0]");
  add("--dump", options->dump, "FILE",
      "Check the maps in a log (- for stdin) as CUTLASS, FlashInfer, TileLang, DeepGEMM, vLLM and SGLang print them");
  command->add_flag("--gather4", options->gather4, "Count the bytes of a load of four rows (compute capability 10.0)");
  add("--svg", options->svg, "FILE", "Write the picture of the tile to FILE");
  command->add_flag("-f,--force", options->force, "Replace FILE when it exists");
  command->add_flag("--rules", options->rules, "Print the table of all rules");
  command->footer(
      "Example: tmaops tensormap --dtype f16 --dims 32,160,92 --box 32,2,2 --swizzle 64B --at 0,-1,3\n"
      "Ends with 0 when map and load are valid, 1 when not. docs/tma.md explains it all.");
  set_run(*command, globals, [&globals, options] { return run(globals, *options); });
}

}  // namespace tmaops::cli
