#include "scenarios/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace vcpusim {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  bool open() const { return number_ >= 0; }
  int number() const { return number_; }
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

FileText read_file(const std::filesystem::path& file, std::size_t most) {
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in.open()) return {{}, reason(errno), false};
  struct stat status {};
  if (::fstat(in.number(), &status) == 0 && status.st_size > static_cast<off_t>(most)) return {{}, {}, true};
  FileText result;
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  for (;;) {
    const std::size_t have = result.text.size();
    if (have > most) return {{}, {}, true};  // a pipe
    result.text.resize(have + kChunk);
    const ssize_t got = ::read(in.number(), result.text.data() + have, kChunk);
    const int error = errno;
    result.text.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return result;
    if (got < 0 && error != EINTR) return {{}, reason(error), false};
  }
}

std::string write_file(const std::filesystem::path& file, std::string_view text) {
  std::error_code ignored;
  const auto status = std::filesystem::status(file, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    Descriptor out(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    return out.open() && write_all(out.number(), text) && out.close() ? "" : reason(errno);
  }
  // In the same folder, because a rename does not cross file systems.
  std::string beside = file.string() + ".XXXXXX";
  Descriptor out(::mkstemp(beside.data()));
  if (!out.open()) return reason(errno);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const bool written = ::fchmod(out.number(), 0666 & ~mask) == 0 && write_all(out.number(), text) &&
                       ::fsync(out.number()) == 0 && out.close() && ::rename(beside.c_str(), file.c_str()) == 0;
  if (written) return {};
  const std::string problem = reason(errno);
  ::unlink(beside.c_str());
  return problem;
}

}  // namespace vcpusim
