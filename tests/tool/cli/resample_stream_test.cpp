// `tmaops resample` between pipes.
#include <gtest/gtest.h>

#include "cli/resample_fixture.hpp"

namespace tmaops::test {
namespace {

class ResampleStream : public ResampleCommandTest {
 protected:
  /// Runs a shell line in the folder; $0 is the program.
  ToolResult shell(const std::string& line) const {
    return Tool({"-c", "cd '" + folder.path().string() + "' && " + line, TMAOPS_TOOL}, {}, "bash").wait();
  }
};

TEST_F(ResampleStream, a_dash_is_standard_input_and_output) {
  file("in.csv", "t,x\n0.0,1.5\n1.0,2.5\n");
  const ToolResult both = shell("\"$0\" resample - --from csv -o - --to csv --hz 2 < in.csv");
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_EQ(both.out, "t,x\n0.0,1.5\n0.5,2.0\n1.0,2.5\n");
  expect_text(both.err, "3 rows from 2 samples", "time: column 't'");
  const ToolResult chain =
      shell("\"$0\" resample in.csv -o - --to npz --hz 2 | \"$0\" resample - --from npz -o - --to csv --hz 4 --quiet");
  EXPECT_EQ(chain.exit_code, 0) << chain.err;
  EXPECT_EQ(chain.out, "t,x\n0.00,1.5\n0.25,1.75\n0.50,2.0\n0.75,2.25\n1.00,2.5\n");
  EXPECT_EQ(folder.names(), std::set<std::string>{"in.csv"});
}

TEST_F(ResampleStream, a_file_of_that_name_is_named_with_its_folder) {
  file("-", "t,x\n0,1.5\n1,2.5\n");
  file("other.csv", "t,x\n0,7.5\n1,7.5\n");
  EXPECT_EQ(shell("\"$0\" resample ./- --from csv -o a.csv --hz 1").exit_code, 0);
  EXPECT_EQ(read_all(folder / "a.csv"), "t,x\n0,1.5\n1,2.5\n");
  EXPECT_EQ(shell("\"$0\" resample - --from csv -o b.csv --hz 1 < other.csv").exit_code, 0);
  EXPECT_EQ(read_all(folder / "b.csv"), "t,x\n0,7.5\n1,7.5\n") << "the pipe and not the file";
}

TEST_F(ResampleStream, what_cannot_go_through_a_pipe_is_refused) {
  const std::string in = file("in.csv", "t,x\n0,1.5\n1,2.5\n");
  expect_refused(ErrorCode::usage, {"-", "-o", path("o.csv"), "--hz", "1"}, {"standard input", "--from", "./-"});
  expect_refused(ErrorCode::usage, {in, "-o", "-", "--hz", "1"}, {"standard output", "--to", "./-"});
  expect_refused(ErrorCode::usage, {in, "-o", "-", "--to", "csv", "--hz", "1", "--json"}, {"--json"});
  expect_refused(ErrorCode::usage, {in, "-o", path("o.csv"), "--times", "-"}, {"standard stream"});
}

TEST_F(ResampleStream, a_failure_writes_nothing_to_standard_output) {
  const ToolResult refused =
      shell("printf 't,x\\n1,1.5\\n0,2.5\\n' | \"$0\" resample - --from csv -o - --to csv --hz 1");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  expect_text(refused.err, "E030");
}

}  // namespace
}  // namespace tmaops::test
