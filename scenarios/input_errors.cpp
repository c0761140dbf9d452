#include "scenarios/input_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace vcpusim {

namespace {
// Enough to work through; a file with more is wrong in a way that the first ones show.
constexpr std::size_t kMostErrors = 200;
}  // namespace

void InputErrors::add(const Place& place, std::string_view pointer, std::string_view message) {
  add_new({place.source ? *place.source : std::string(), place.line, place.column,
           fmt::format("{}: {}", pointer.empty() ? "/" : pointer, message)});
}

void InputErrors::add(std::string_view subject, std::string_view message) {
  add_new({std::string(subject), 0, 0, std::string(message)});
}

void InputErrors::add_all(const InputErrors& others) {
  for (const Error& error : others.errors_) add_new(error);
  unreadable_ = unreadable_ || others.unreadable_;
}

void InputErrors::add_new(Error error) {
  if (errors_.size() < kMostErrors && std::ranges::find(errors_, error) == errors_.end()) {
    errors_.push_back(std::move(error));
  }
}

void InputErrors::add_unreadable(std::string_view file, std::string_view reason) {
  add(file, fmt::format("cannot be read: {}", reason));
  unreadable_ = true;
}

std::vector<std::string> InputErrors::lines() const {
  std::vector<std::string> sources;
  for (const Error& e : errors_) {
    if (std::ranges::find(sources, e.source) == sources.end()) sources.push_back(e.source);
  }
  std::vector<Error> sorted = errors_;
  std::ranges::stable_sort(sorted, {}, [&](const Error& e) {
    return std::tuple(std::ranges::find(sources, e.source) - sources.begin(), e.line, e.column);
  });
  std::vector<std::string> lines;
  for (const Error& e : sorted) {
    lines.push_back(e.line == 0 ? fmt::format("{}: {}", e.source, e.text)
                                : fmt::format("{}:{}:{}: {}", e.source, e.line, e.column, e.text));
  }
  return lines;
}

}  // namespace vcpusim
