// `-` is stdin and stdout.
#include "cli/resample_fixture.hpp"

namespace tmaops::test {
namespace {

class ResampleStandard : public ResampleCommandTest {
 protected:
  /// A shell command, with the tool as $TOOL, in the folder.
  ToolResult shell(const std::string& command) const {
    return Tool({"-c", "cd '" + folder.path().string() + "' && " + command}, {{"TOOL", TMAOPS_TOOL}}, "sh").wait();
  }
};

TEST_F(ResampleStandard, a_dash_reads_the_pipe_and_writes_to_it) {
  file("a.csv", "t,x\n0,1.5\n1,2.5\n");
  file("-", "t,x\n5,100.5\n6,101.5\n");  // a file of that name is not meant
  const ToolResult result = shell("cat a.csv | \"$TOOL\" resample - --from csv --hz 2 -o - --to csv -q");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "t,x\n0.0,1.5\n0.5,2.0\n1.0,2.5\n");
  const ToolResult redirected = shell("\"$TOOL\" resample - --from csv --hz 2 -o b.csv <a.csv");
  EXPECT_EQ(redirected.exit_code, 0) << redirected.err;
  EXPECT_EQ(read_all(path("b.csv")), result.out);
  const ToolResult named = shell("\"$TOOL\" resample ./- --from csv --hz 1 -o - --to csv -q");
  EXPECT_EQ(named.out, "t,x\n5,100.5\n6,101.5\n") << named.err;
  EXPECT_EQ(read_all(path("-")), "t,x\n5,100.5\n6,101.5\n");
}

TEST_F(ResampleStandard, a_dash_has_no_format_of_its_own) {
  file("a.csv", "t,x\n0,1.5\n1,2.5\n");
  const ToolResult in = shell("\"$TOOL\" resample - --hz 2 -o b.csv <a.csv");
  EXPECT_EQ(in.exit_code, 2);
  expect_text(in.err, "--from", "./-");
  const ToolResult out = shell("\"$TOOL\" resample a.csv --hz 2 -o -");
  EXPECT_EQ(out.exit_code, 2);
  expect_text(out.err, "--to", "./-");
  EXPECT_EQ(out.out, "");
}

TEST_F(ResampleStandard, stdin_is_one_input_only) {
  file("a.csv", "t,x\n0,1.5\n1,2.5\n");
  const ToolResult twice = shell("\"$TOOL\" resample - --from csv --like - -o b.csv <a.csv");
  EXPECT_EQ(twice.exit_code, 2) << twice.err;
}

TEST_F(ResampleStandard, a_reader_that_leaves_is_no_error) {
  std::string text = "t,x\n";
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + ".5,1.5\n";
  file("a.csv", text);
  const ToolResult result = shell("{ \"$TOOL\" resample a.csv --hz 10 -o - --to csv -q; echo $? >code; } | head -n 1");
  EXPECT_EQ(result.out, "t,x\n") << result.err;
  EXPECT_EQ(read_all(path("code")), "0\n") << result.err;
}

TEST_F(ResampleStandard, a_full_device_is_an_error) {
  file("a.csv", "t,x\n0,1.5\n1,2.5\n");
  const ToolResult result = shell("\"$TOOL\" resample a.csv --hz 10 -o - --to csv >/dev/full");
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "E053", "stdout");
}

}  // namespace
}  // namespace tmaops::test
