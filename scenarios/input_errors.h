// What is wrong with an input, all of it at once, each as one line
//
//     FILE:LINE:COLUMN: /json/pointer: what is wrong (what would be right)
//
// LINE and COLUMN count from 1, COLUMN in bytes. The whole document is written as the pointer "/". For a value that
// came from the command line, the option stands in the place of FILE:LINE:COLUMN.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vcpusim {

struct Place {
  std::shared_ptr<const std::string> source;  // a file's name as the user gave it, or an option such as "--set a=b"
  std::uint32_t line = 0;                     // 0: the source has no lines
  std::uint32_t column = 0;
};

class InputErrors {
 public:
  // Says the same thing once, however often it is added (a shared program is read once per guest that runs it).
  void add(const Place& place, std::string_view pointer, std::string_view message);
  // For what has no place inside a document: `FILE: message`.
  void add(std::string_view subject, std::string_view message);

  // The file could not be read at all, which is not its author's mistake.
  void add_unreadable(std::string_view file, std::string_view reason);

  void add_all(const InputErrors& others);

  bool empty() const { return errors_.empty(); }
  std::size_t size() const { return errors_.size(); }
  // Whether add_unreadable was called.
  bool unreadable() const { return unreadable_; }

  // One line each, in the order of the places, those of the first mentioned source first.
  std::vector<std::string> lines() const;

 private:
  struct Error {
    std::string source;
    std::uint32_t line;
    std::uint32_t column;
    std::string text;  // pointer and message
    bool operator==(const Error&) const = default;
  };
  void add_new(Error error);

  std::vector<Error> errors_;
  bool unreadable_ = false;
};

}  // namespace vcpusim
