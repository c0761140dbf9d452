#include "scenarios/results_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "scenarios/files.h"
#include "scenarios/points.h"
#include "scenarios/results_file.h"

namespace vcpusim {
namespace {

std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
}

std::string csv_cell(const MetricValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return csv_text(*text);
  return std::visit([](const auto& number) { return fmt::format("{}", number); }, value);
}

}  // namespace

void write_csv(const std::filesystem::path& results, const std::filesystem::path& csv) {
  // Points may differ in their metrics; new ones get their columns behind the others.
  std::vector<std::string> axes;
  std::vector<std::string> metrics;
  std::unordered_map<std::string, std::size_t> column_of;
  InputErrors errors;
  const auto collect = [&](const RunRecord& record, std::string_view) {
    for (const Coordinate& c : record.point) {
      if (std::ranges::find(axes, c.path) == axes.end()) axes.push_back(c.path);
    }
    for (const auto& [path, value] : record.result.metrics) {
      if (column_of.emplace(path, metrics.size()).second) metrics.push_back(path);
    }
  };
  if (!read_results(results, {{}, collect}, errors)) throw FileError(errors.lines().front());

  NewFile out(csv);
  std::string line;
  for (const std::string& axis : axes) line += csv_text(axis) + ",";
  line += "seed,replication,ended,sim_time_s";
  for (const std::string& metric : metrics) line += "," + csv_text(metric);
  out.write(line + "\n");
  std::vector<std::string> cells(metrics.size());
  const auto write = [&](const RunRecord& record, std::string_view) {
    line.clear();
    for (const std::string& axis : axes) {
      const auto at = std::ranges::find(record.point, axis, &Coordinate::path);
      line += (at == record.point.end() ? "" : csv_text(value_text(at->value))) + ",";
    }
    line += fmt::format("{},{},{},{}", record.seed, record.replication, name_of(record.result.ended),
                        to_seconds(record.result.sim_time));
    for (std::string& cell : cells) cell.clear();
    for (const auto& [path, value] : record.result.metrics) cells[column_of.at(path)] = csv_cell(value);
    for (const std::string& cell : cells) line += "," + cell;
    out.write(line + "\n");
  };
  read_results(results, {{}, write}, errors);
  const std::string problem = out.commit();
  if (!problem.empty()) throw FileError(fmt::format("{}: cannot be written: {}", csv.string(), problem));
}

}  // namespace vcpusim
