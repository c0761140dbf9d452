// The standard streams, and what is only for people who watch them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/input_errors.h"

namespace vcpusim {

// What was asked for, to standard output. If nobody reads it any more, it is dropped.
void print_out(std::string_view text);
void print_error(std::string_view text);

// One line each on standard error; the exit status that they mean.
int report_errors(const InputErrors& errors);

// A bar on standard error, drawn only if that is a terminal, with the time that is left if it goes on like this.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();  // erases it
  void show(std::size_t done, std::size_t all);

 private:
  const bool visible_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::string drawn_;
};

// True from the first SIGINT or SIGTERM on. A second one ends the process at once.
const std::atomic<bool>& watch_interrupts();

// Rows of cells, columns aligned: numbers to the right, texts to the left. The first row is the heading.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> heading) { rows_.push_back(std::move(heading)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }  // REQUIRES as many cells
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Four significant digits, so that columns of unlike sizes can be read: 1045, 2.388, 0.0001234, 1.2e+09.
std::string short_number(double value);

}  // namespace vcpusim
