#include "scenarios/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace vcpusim {
std::string error_text(int number) { return std::generic_category().message(number); }

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Descriptor::~Descriptor() {
  if (open()) ::close(number_);
}

bool Descriptor::close() { return ::close(std::exchange(number_, -1)) == 0; }

bool write_all(const Descriptor& out, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(out.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool read_all(const Descriptor& in, std::uint64_t offset, std::span<char> into) {
  while (!into.empty()) {
    const ssize_t got = ::pread(in.number(), into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

FileText read_file(const std::filesystem::path& file, std::size_t most) {
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in.open()) return {{}, error_text(errno), false};
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
    if (got < 0 && error != EINTR) return {{}, error_text(error), false};
  }
}

NewFile::NewFile(std::filesystem::path file) : file_(std::move(file)) {
  std::error_code ignored;
  const auto status = std::filesystem::status(file_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    direct_ = true;
    out_ = Descriptor(::open(file_.c_str(), O_WRONLY | O_CLOEXEC));
    check(out_.open());
    return;
  }
  // In the same folder, because a rename does not cross file systems. Without a name nothing is left of it if this
  // process is killed.
  const std::string folder = file_.has_parent_path() ? file_.parent_path().string() : ".";
  out_ = Descriptor(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  if (out_.open()) return;
  beside_ = file_.string() + ".XXXXXX";
  out_ = Descriptor(::mkstemp(beside_.data()));
  if (!out_.open()) beside_.clear();
  check(out_.open());
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (problem_.empty()) check(::fchmod(out_.number(), 0666 & ~mask) == 0);
}

NewFile::~NewFile() {
  if (!beside_.empty()) ::unlink(beside_.c_str());
}

void NewFile::check(bool good) {
  if (!good && problem_.empty()) problem_ = error_text(errno);
}

void NewFile::write(std::string_view text) {
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  buffer_ += text;
  if (buffer_.size() < kPiece) return;
  if (problem_.empty()) check(write_all(out_, buffer_));
  buffer_.clear();
}

std::string NewFile::commit() {
  if (problem_.empty()) check(write_all(out_, buffer_) && (direct_ ? out_.close() : appear()));
  return problem_;
}

bool NewFile::appear() {
  if (::fsync(out_.number()) != 0) return false;
  if (beside_.empty()) {
    const std::string open_file = "/proc/self/fd/" + std::to_string(out_.number());
    const std::string name = file_.string() + "." + std::to_string(::getpid());
    ::unlink(name.c_str());  // of a process that was killed here
    if (::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) return false;
    beside_ = name;
  }
  if (!out_.close() || ::rename(beside_.c_str(), file_.c_str()) != 0) return false;
  beside_.clear();
  return true;
}

std::string write_file(const std::filesystem::path& file, std::string_view text) {
  NewFile out(file);
  out.write(text);
  return out.commit();
}

}  // namespace vcpusim
