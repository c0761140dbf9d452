// Files, in and out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vcpusim {

struct FileText {
  std::string text;
  std::string problem;     // why the file could not be read; then text is empty
  bool too_large = false;  // more than was asked for; then text is empty
};

// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  bool open() const { return number_ >= 0; }
  int number() const { return number_; }
  bool close();  // false if what was written before is lost

 private:
  int number_ = -1;
};

bool write_all(const Descriptor& out, std::string_view text);  // errno if false
// From `offset` on as many bytes as `into` has; false if there are fewer.
bool read_all(const Descriptor& in, std::uint64_t offset, std::span<char> into);

std::string error_text(int number);  // of an errno

// A file cannot be read or written: "FILE: cannot be written: No space left on device".
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

FileText read_file(const std::filesystem::path& file, std::size_t most);

// A file that appears whole or not at all: written without a name where the file system can do that and beside
// otherwise, flushed to the disk, then renamed. Devices and pipes are written to directly. Once something went wrong,
// nothing more is written.
class NewFile {
 public:
  explicit NewFile(std::filesystem::path file);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();  // the file does not appear unless commit() was called

  void write(std::string_view text);
  // Returns what went wrong with this or earlier calls, or "".
  std::string commit();

 private:
  void check(bool good);
  bool appear();

  std::filesystem::path file_;
  Descriptor out_;
  bool direct_ = false;
  std::string beside_;  // has this name until it is renamed; empty if it has none
  std::string buffer_;
  std::string problem_;
};

// A NewFile with this text.
std::string write_file(const std::filesystem::path& file, std::string_view text);

}  // namespace vcpusim
