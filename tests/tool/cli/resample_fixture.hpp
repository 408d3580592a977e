// What the tests of `tmaops resample` share: a folder, small files, and the shape of a refusal.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "io/recording.hpp"
#include "support/npy_bytes.hpp"
#include "support/scratch.hpp"
#include "support/tool.hpp"
#include "tmaops/error.hpp"

namespace tmaops::test {

class ResampleCommandTest : public testing::Test {
 protected:
  /// Content of every regular file in the folder.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const std::string& name : folder.names())
      all[name] = std::filesystem::is_regular_file(folder / name) ? read_all(folder / name) : "";
    return all;
  }

  std::string path(const std::filesystem::path& name) const { return (folder / name).string(); }
  std::string file(const std::string& name, const std::string& content) const { return folder.file(name, content); }

  static ToolResult resample(const std::vector<std::string>& arguments, const Tool::Environment& environment = {}) {
    std::vector<std::string> all{"resample"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_tool(all, environment);
  }

  /// Expects that the command ends with the error's number, name and exit code and says all the pieces, that nothing in
  /// the folder changed, and that the next, correct call succeeds.
  void expect_refused(ErrorCode code, const std::vector<std::string>& arguments,
                      std::initializer_list<std::string> pieces = {}, const Tool::Environment& environment = {}) {
    const auto before = contents();
    const ToolResult result = resample(arguments, environment);
    const ErrorPage& page = error_page(code);
    EXPECT_EQ(result.exit_code, page.exit_code) << result.err;
    EXPECT_NE(result.err.find(std::string(page.number) + " "), std::string::npos)
        << "wanted " << page.number << " " << page.name << ", got:\n"
        << result.err;
    for (const std::string& piece : pieces)
      EXPECT_NE(result.err.find(piece), std::string::npos) << "no '" << piece << "' in:\n" << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(contents(), before) << "something was written or lost";

    const Scratch other;
    const std::string good = other.file("good.csv", "t,x\n0,1.5\n1,2.5\n");
    const ToolResult next = resample({good, "-o", other / "out.csv", "--hz", "2"});
    EXPECT_EQ(next.exit_code, 0) << next.err;
    EXPECT_EQ(read_all(other / "out.csv"), "t,x\n0.0,1.5\n0.5,2.0\n1.0,2.5\n");
  }

  /// Runs the command, expects success, and reads what it wrote.
  io::Recording expect_done(const std::vector<std::string>& arguments, const std::string& output,
                            const Tool::Environment& environment = {}) {
    last = resample(arguments, environment);
    EXPECT_EQ(last.exit_code, 0) << last.err;
    if (last.exit_code != 0) return {};
    return io::read_recording(output);
  }

  static std::vector<double> values(const io::Recording& recording, const std::string& name) {
    std::vector<double> all;
    for (const io::Column& column : recording.columns)
      if (column.name == name)
        for (std::int64_t i = 0; i < column.data.size(); ++i) all.push_back(io::element_f64(column.data, i));
    return all;
  }

  /// An npz file of arrays name -> npy bytes.
  std::string archive(const std::string& name, const std::vector<std::pair<std::string, std::string>>& arrays) const {
    std::vector<ZipPart> parts;
    for (const auto& [array, content] : arrays) parts.push_back(ZipPart::make(array + ".npy", content));
    return folder.file(name, zip(parts));
  }

  Scratch folder;
  ToolResult last{};
};

}  // namespace tmaops::test
