#include "tools/vcpusim/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>

#include "tools/vcpusim/command.h"

namespace vcpusim {
namespace {

void print(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");

void on_signal(int number) {
  interrupted = true;
  std::signal(number, SIG_DFL);
}

bool is_numeric(std::string_view cell) {
  return cell.empty() || std::isdigit(static_cast<unsigned char>(cell[0])) != 0 ||
         (cell.size() > 1 && (cell[0] == '-' || cell[0] == '+')) || cell == "-";
}

}  // namespace

void print_out(std::string_view text) { print(STDOUT_FILENO, text); }
void print_error(std::string_view text) { print(STDERR_FILENO, text); }

int report_errors(const InputErrors& errors) {
  std::string text;
  for (const std::string& line : errors.lines()) text += line + "\n";
  print_error(text);
  return errors.unreadable() ? kExitFile : kExitWrongInput;
}

ProgressBar::ProgressBar() : visible_(::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (!drawn_.empty()) print_error("\r\x1b[K");
}

void ProgressBar::show(std::size_t done, std::size_t all) {
  if (!visible_) return;
  constexpr std::size_t kWidth = 40;
  const std::size_t filled = all == 0 ? kWidth : done * kWidth / all;
  std::string bar = fmt::format("\r[{:#<{}}{:.<{}}] {} of {} runs", "", filled, "", kWidth - filled, done, all);
  if (done > 0 && done < all) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    const double left = spent.count() * static_cast<double>(all - done) / static_cast<double>(done);
    const auto seconds = static_cast<std::int64_t>(left);
    bar += fmt::format(", {}:{:02} left\x1b[K", seconds / 60, seconds % 60);
  }
  if (bar == drawn_) return;
  print_error(bar);
  drawn_ = std::move(bar);
}

const std::atomic<bool>& watch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  return interrupted;
}

std::string TextTable::text() const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns, 0);
  std::vector<bool> right(columns, true);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], rows_[r][c].size());
      if (r > 0 && !is_numeric(rows_[r][c])) right[c] = false;
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < columns; ++c) {
      if (c > 0) line += "  ";
      line += right[c] ? fmt::format("{:>{}}", row[c], widths[c]) : fmt::format("{:<{}}", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string short_number(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 1000 && magnitude < 1e9) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

}  // namespace vcpusim
