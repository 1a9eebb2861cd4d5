// What a report says, before any format: sections of tables, charts and texts side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "eval/report/table.h"

namespace asdbench {

struct Point {
  double x = 0, y = 0;
  std::optional<double> x_low, x_high, y_low, y_high;  // 95 % intervals
};

struct Series {
  std::string name;
  std::vector<Point> points;
};

enum class ChartKind : std::uint8_t {
  kScatter,  // points with intervals
  kLines,    // points joined, in the order of x
  kStacked,  // one bar a category, one part a series; x of a point is the category
};

enum class Unit : std::uint8_t { kNumber, kShare };

struct Axis {
  std::string label;
  Unit unit = Unit::kNumber;  // a share is printed in percent
  bool from_zero = false;
};

struct Chart {
  ChartKind kind = ChartKind::kLines;
  std::string title;
  Axis x, y;
  std::vector<Series> series;
  std::vector<std::string> categories;  // of kStacked
};

/// Two replies to one prompt; `common` bytes are equal from the start of both.
struct TextPair {
  std::string title;
  std::string left_name, left, right_name, right;
  std::size_t common = 0;
  bool cut_front = false, cut_left = false, cut_right = false;  // where text was left out
};

using Content = std::variant<Table, Chart, TextPair>;

struct Section {
  std::string id, title;
  std::string note;    // one paragraph; "" for none
  bool brief = false;  // whether it stands in the terminal's short form
  std::vector<Content> blocks;
};

struct Report {
  std::string title;
  std::vector<Table> matrix;  // one for each task, target, drafter and device
  Table all_cells;            // the same in one table, for formats that can sort
  std::vector<Section> sections;
};

}  // namespace asdbench
