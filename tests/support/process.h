// Runs a program and keeps what it did.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace vcpusim::testing {

struct ProcessResult {
  int status = -1;  // exit status, or 128 + the signal that ended it
  std::string out;
  std::string err;
  std::chrono::microseconds cpu_time{};
  long peak_kilobytes = 0;  // of resident memory
};

inline std::string read_whole(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_whole(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

// A folder that is removed with all its files at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "vcpusim_test.XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct ProcessOptions {
  std::filesystem::path folder = ".";
  std::chrono::milliseconds interrupt_after{0};  // sends SIGINT then; 0: never
  bool closed_stdout = false;                    // nobody reads standard output
};

inline ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options = {}) {
  const TemporaryFolder scratch;
  const std::string out = scratch.path() / "out";
  const std::string err = scratch.path() / "err";
  int nobody[2] = {-1, -1};
  if (options.closed_stdout && ::pipe(nobody) == 0) ::close(nobody[0]);

  const pid_t child = ::fork();
  if (child == 0) {
    const int out_file = options.closed_stdout ? nobody[1] : ::open(out.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(out_file, STDOUT_FILENO);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    std::vector<char*> argv;
    for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    if (::chdir(options.folder.c_str()) == 0) ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  if (options.closed_stdout) ::close(nobody[1]);
  if (options.interrupt_after.count() > 0) {
    ::usleep(static_cast<useconds_t>(options.interrupt_after.count() * 1000));
    ::kill(child, SIGINT);
  }
  int status = 0;
  struct rusage usage {};
  ::wait4(child, &status, 0, &usage);
  ProcessResult result;
  for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
    result.cpu_time += std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_whole(out);
  result.err = read_whole(err);
  result.peak_kilobytes = usage.ru_maxrss;
  return result;
}

}  // namespace vcpusim::testing
