#include "offers/output_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <thread>

#include "support/expect_error.hpp"
#include "support/scratch.hpp"

namespace tmaops::io {
namespace {

using test::expect_error;
using test::in_child;
using test::read_all;
using test::Scratch;
using Names = std::set<std::string>;

TEST(OutputFile, appears_only_at_commit_and_leaves_nothing_else) {
  const Scratch folder;
  {
    OutputFile file(folder / "a.txt");
    file.write("one ");
    file.write("two");
    EXPECT_FALSE(std::filesystem::exists(folder / "a.txt"));
    file.commit();
    EXPECT_EQ(file.bytes_written(), 7U);
  }
  EXPECT_EQ(folder.names(), (Names{"a.txt"}));
  EXPECT_EQ(read_all(folder / "a.txt"), "one two");
}

TEST(OutputFile, writes_more_than_its_buffer) {
  const Scratch folder;
  std::string content(1'000'003, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 % 251);
  write_file(folder / "large", content);
  EXPECT_EQ(read_all(folder / "large"), content);
}

TEST(OutputFile, an_exception_keeps_the_earlier_file) {
  const Scratch folder;
  folder.file("a.txt", "earlier");
  EXPECT_THROW(
      {
        OutputFile file(folder / "a.txt", {.force = true});
        file.write("half");
        throw std::runtime_error("stop");
      },
      std::runtime_error);
  EXPECT_EQ(folder.names(), (Names{"a.txt"}));
  EXPECT_EQ(read_all(folder / "a.txt"), "earlier");
}

TEST(OutputFile, an_existing_file_is_replaced_only_with_force_and_keeps_its_mode) {
  const Scratch folder;
  folder.file("a.txt", "earlier");
  ASSERT_EQ(chmod((folder / "a.txt").c_str(), 0640), 0);
  expect_error(ErrorCode::output_exists, [&] { write_file(folder / "a.txt", "new"); }, "a.txt", "7 bytes");
  EXPECT_EQ(read_all(folder / "a.txt"), "earlier");
  write_file(folder / "a.txt", "new", {.force = true});
  EXPECT_EQ(read_all(folder / "a.txt"), "new");
  struct stat status{};
  ASSERT_EQ(stat((folder / "a.txt").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
}

TEST(OutputFile, a_file_that_appears_meanwhile_is_not_lost) {
  const Scratch folder;
  OutputFile file(folder / "a.txt");
  file.write("ours");
  folder.file("a.txt", "theirs");
  expect_error(ErrorCode::output_exists, [&] { file.commit(); });
  EXPECT_EQ(read_all(folder / "a.txt"), "theirs");
  EXPECT_EQ(folder.names(), (Names{"a.txt"}));
}

TEST(OutputFile, the_input_is_never_the_output_under_any_spelling) {
  const Scratch folder;
  const auto input = folder.file("in.csv", "data");
  std::filesystem::create_hard_link(input, folder / "hard.csv");
  std::filesystem::create_symlink("in.csv", folder / "soft.csv");
  for (const char* name : {"in.csv", "./in.csv", "../in.csv", "hard.csv", "soft.csv"}) {
    auto output = folder / name;
    if (std::string_view(name) == "../in.csv") {
      std::filesystem::create_directory(folder / "d");
      output = folder / "d/../in.csv";
    }
    expect_error(
        ErrorCode::output_is_input, [&] { write_file(output, "x", {.force = true, .inputs = {input}}); }, "in.csv");
  }
  EXPECT_EQ(read_all(input), "data");
  write_file(folder / "out.csv", "x", {.inputs = {input}});
}

TEST(OutputFile, refuses_directories_devices_and_links_even_with_force) {
  const Scratch folder;
  std::filesystem::create_directory(folder / "d");
  folder.file("target", "kept");
  std::filesystem::create_symlink("target", folder / "link");
  std::filesystem::create_symlink("nowhere", folder / "dangling");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const OutputOptions force{.force = true};
  expect_error(ErrorCode::cannot_write, [&] { write_file(folder / "d", "x", force); }, "directory");
  expect_error(ErrorCode::cannot_write, [&] { write_file(folder / "d/", "x", force); }, "directory");
  expect_error(ErrorCode::cannot_write, [&] { write_file(folder / "link", "x", force); }, "symbolic link", "target");
  expect_error(ErrorCode::cannot_write, [&] { write_file(folder / "dangling", "x", force); }, "nowhere");
  expect_error(ErrorCode::cannot_write, [&] { write_file(folder / "pipe", "x", force); }, "pipe");
  expect_error(ErrorCode::cannot_write, [&] { write_file("/dev/null", "x", force); }, "device");
  expect_error(ErrorCode::cannot_write, [&] { write_file("", "x", force); });
  expect_error(ErrorCode::cannot_write, [&] { write_file(folder / "no/such/a", "x"); }, "No such file or directory");
  expect_error(ErrorCode::cannot_write, [&] { write_file(folder / "target/a", "x"); }, "Not a directory");
  EXPECT_EQ(folder.names(), (Names{"d", "target", "link", "dangling", "pipe"}));
  EXPECT_EQ(read_all(folder / "target"), "kept");
  write_file(folder / "d/a", "x");
}

TEST(OutputFile, a_link_planted_for_the_partial_file_or_the_target_is_not_followed) {
  const Scratch folder;
  const auto victim = folder.file("victim", "kept");
  std::filesystem::create_symlink("victim", folder / ".a.tmaops-partial");
  expect_error(ErrorCode::cannot_write, [&] { write_file(folder / "a", "x"); }, ".a.tmaops-partial");
  std::filesystem::remove(folder / ".a.tmaops-partial");
  std::filesystem::create_hard_link(victim, folder / ".a.tmaops-partial");
  expect_error(ErrorCode::cannot_write, [&] { write_file(folder / "a", "x"); }, ".a.tmaops-partial");
  std::filesystem::remove(folder / ".a.tmaops-partial");

  OutputFile file(folder / "a", {.force = true});
  file.write("ours");
  std::filesystem::create_symlink("victim", folder / "a");  // swapped in after the check
  file.commit();
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "a"));
  EXPECT_EQ(read_all(folder / "a"), "ours");
  EXPECT_EQ(read_all(victim), "kept");
}

TEST(OutputFile, read_only_files_and_folders_are_refused) {
  const Scratch folder;
  folder.file("kept", "kept");
  ASSERT_EQ(chmod((folder / "kept").c_str(), 0444), 0);
  expect_error(ErrorCode::cannot_write, [&] { write_file(folder / "kept", "x", {.force = true}); }, "read-only");
  EXPECT_EQ(read_all(folder / "kept"), "kept");
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  EXPECT_EQ(in_child([&] {
              test::become_nobody();
              try {
                write_file(folder / "a", "x");
              } catch (const Error& error) {
                return error.code() == ErrorCode::cannot_write ? 0 : 1;
              }
              return 2;
            }),
            0);
  EXPECT_EQ(folder.names(), (Names{"kept"}));
}

TEST(OutputFile, another_users_file_in_a_sticky_folder_is_refused_before_the_work) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make another user's file";
  const Scratch folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 01777), 0);
  folder.file("theirs", "kept");
  ASSERT_EQ(chmod((folder / "theirs").c_str(), 0666), 0);
  EXPECT_EQ(in_child([&] {
              test::become_nobody();
              try {
                const OutputFile file(folder / "theirs", {.force = true});
              } catch (const Error& error) {
                return error.code() == ErrorCode::cannot_write ? 0 : 1;
              }
              return 2;
            }),
            0);
  EXPECT_EQ(read_all(folder / "theirs"), "kept");
}

TEST(OutputFile, a_full_disk_loses_nothing) {
  const Scratch folder;
  folder.file("a", "earlier");
  const auto write_a_megabyte = [&] {
    rlimit limit{300'000, 300'000};  // stands for the full disk: write() fails after the first 300,000 bytes
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file(folder / "a", std::string(1'000'000, 'x'), {.force = true});
    } catch (const Error& error) {
      return error.code() == ErrorCode::write_failed ? 0 : 1;
    }
    return 2;
  };
  EXPECT_EQ(in_child(write_a_megabyte), 0);
  EXPECT_EQ(folder.names(), (Names{"a"}));
  EXPECT_EQ(read_all(folder / "a"), "earlier");
  write_file(folder / "a", "later", {.force = true});
  EXPECT_EQ(read_all(folder / "a"), "later");
}

TEST(OutputFile, two_writers_of_one_output_exclude_each_other) {
  const Scratch folder;
  OutputFile first(folder / "a");
  first.write("first");
  expect_error(ErrorCode::output_locked, [&] { write_file(folder / "a", "second"); }, "locked");
  EXPECT_EQ(in_child([&] {
              try {
                write_file(folder / "a", "second");
              } catch (const Error& error) {
                return error.code() == ErrorCode::output_locked ? 0 : 1;
              }
              return 2;
            }),
            0);
  write_file(folder / "b", "another output is free");
  first.commit();
  EXPECT_EQ(read_all(folder / "a"), "first");
  write_file(folder / "a", "second", {.force = true});
  EXPECT_EQ(read_all(folder / "a"), "second");
}

TEST(OutputFile, what_a_killed_process_left_does_not_block) {
  const Scratch folder;
  EXPECT_EQ(in_child([&] {
              OutputFile file(folder / "a");
              file.write(std::string(1'000'000, 'x'));
              raise(SIGKILL);
              return 0;
            }),
            128 + SIGKILL);
  EXPECT_EQ(folder.names(), (Names{".a.tmaops-partial"}));
  write_file(folder / "a", "whole");
  EXPECT_EQ(folder.names(), (Names{"a"}));
  EXPECT_EQ(read_all(folder / "a"), "whole");
}

TEST(OutputFile, a_signal_handler_can_remove_partial_files) {
  const Scratch folder;
  EXPECT_EQ(in_child([&] {
              std::signal(SIGINT, [](int) {
                discard_partial_outputs();
                _exit(130);
              });
              OutputFile one(folder / "a");
              OutputFile two(folder / "b");
              one.write(std::string(1'000'000, 'x'));
              raise(SIGINT);
              return 0;
            }),
            130);
  EXPECT_EQ(folder.names(), Names{});
}

TEST(OutputFile, a_signal_at_any_moment_leaves_nothing) {
  const Scratch folder;
  for (int round = 0; round < 300; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::signal(SIGTERM, [](int) {
        discard_partial_outputs();
        _exit(0);
      });
      alarm(20);
      for (;;) OutputFile(folder / "a.txt").write("half");
    }
    for (int i = 0; i < 10'000 && !std::filesystem::exists(folder / ".a.txt.tmaops-partial"); ++i)
      std::this_thread::yield();
    kill(child, SIGTERM);
    waitpid(child, nullptr, 0);
    ASSERT_EQ(folder.names(), Names{}) << "round " << round;
  }
}

TEST(OutputFile, names_of_any_bytes_and_of_full_length_work) {
  const Scratch folder;
  write_file(folder / "caf\xe9 \n", "latin-1");
  EXPECT_EQ(read_all(folder / "caf\xe9 \n"), "latin-1");
  expect_error(ErrorCode::output_exists, [&] { write_file(folder / "caf\xe9 \n", "x"); }, "caf\\xe9 \\x0a");
  write_file(folder / std::string(255, 'n'), "long");
  EXPECT_EQ(read_all(folder / std::string(255, 'n')), "long");
  expect_error(ErrorCode::cannot_write, [&] { write_file(folder / std::string(256, 'n'), "x"); }, "too long");
  std::string deep = folder.path();
  while (deep.size() < 4096) deep += "/.";
  expect_error(ErrorCode::cannot_write, [&] { write_file(deep + "/a", "x"); }, "too long", "bytes ...]");
  write_file(deep.substr(0, 4000) + "/a", "near the limit");
  EXPECT_EQ(read_all(folder / "a"), "near the limit");
}

}  // namespace
}  // namespace tmaops::io
