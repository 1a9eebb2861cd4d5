// Draws points, lines and stacked bars; shapes differ as well as colours.
#include "eval/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace asdbench {
namespace {

// Units of the viewBox; a chart is shown at about this size, so that its text stays readable on a
// phone.
constexpr double kWidth = 420, kHeight = 290;
constexpr double kLeft = 52, kRight = 12, kTop = 10, kBottom = 44;
constexpr double kBarHeight = 22, kBarText = 13;
/// Series have so many colours and shapes; a longer line shows no markers.
constexpr std::size_t kMarkers = 6, kMostMarks = 30;

struct Range {
  double low = 0, high = 1;
};

Range range_of(const Chart& chart, bool horizontal) {
  Range range{.low = HUGE_VAL, .high = -HUGE_VAL};
  const auto widen = [&](std::optional<double> value) {
    if (!value || !std::isfinite(*value)) return;
    range.low = std::min(range.low, *value);
    range.high = std::max(range.high, *value);
  };
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      widen(horizontal ? point.x : point.y);
      widen(horizontal ? point.x_low : point.y_low);
      widen(horizontal ? point.x_high : point.y_high);
    }
  }
  if (range.low > range.high) return {};
  if ((horizontal ? chart.x : chart.y).from_zero) range.low = std::min(range.low, 0.0);
  if (range.high - range.low < 1e-9) {
    range.low -= 0.5;
    range.high += 0.5;
  }
  return range;
}

/// 1, 2 or 5 times a power of ten: at most some six steps.
double step_of(const Range& range) {
  const double raw = (range.high - range.low) / 5;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

/// Widened to whole steps.
Range rounded(Range range, double step) {
  return {.low = std::floor(range.low / step + 1e-9) * step,
          .high = std::ceil(range.high / step - 1e-9) * step};
}

std::string tick_text(double value, Unit unit) {
  if (std::fabs(value) < 1e-12) value = 0;
  return unit == Unit::kShare ? fmt::format("{:.4g} %", 100 * value) : fmt::format("{:.6g}", value);
}

class Plot {
 public:
  explicit Plot(const Chart& chart) : chart_(chart) {
    const Range raw_x = range_of(chart, true), raw_y = range_of(chart, false);
    step_x_ = step_of(raw_x);
    step_y_ = step_of(raw_y);
    x_ = rounded(raw_x, step_x_);
    y_ = rounded(raw_y, step_y_);
    if (chart.y.unit == Unit::kShare) y_.high = std::min(y_.high, std::max(raw_y.high, 1.0));
  }

  double at_x(double value) const {
    return kLeft + (value - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
  }
  double at_y(double value) const {
    return kHeight - kBottom - (value - y_.low) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }

  std::string axes() const {
    std::string out;
    for (double value = y_.low; value <= y_.high + step_y_ / 2; value += step_y_) {
      out += fmt::format(
          "<line class=grid x1={:.1f} x2={:.1f} y1={:.1f} y2={:.1f} /><text x={:.1f} y={:.1f} "
          "text-anchor=end>{}</text>",
          kLeft, kWidth - kRight, at_y(value), at_y(value), kLeft - 5, at_y(value) + 4,
          escape_html(tick_text(value, chart_.y.unit)));
    }
    for (double value = x_.low; value <= x_.high + step_x_ / 2; value += step_x_) {
      out += fmt::format(
          "<line class=grid x1={:.1f} x2={:.1f} y1={:.1f} y2={:.1f} /><text x={:.1f} y={:.1f} "
          "text-anchor=middle>{}</text>",
          at_x(value), at_x(value), kTop, kHeight - kBottom, at_x(value), kHeight - kBottom + 15,
          escape_html(tick_text(value, chart_.x.unit)));
    }
    out += fmt::format("<text x={:.1f} y={:.1f} text-anchor=middle>{}</text>",
                       (kLeft + kWidth - kRight) / 2, kHeight - 8, escape_html(chart_.x.label));
    out += fmt::format(
        "<text transform=\"translate(12 {:.1f}) rotate(-90)\" text-anchor=middle>{}</text>",
        (kTop + kHeight - kBottom) / 2, escape_html(chart_.y.label));
    return out;
  }

 private:
  const Chart& chart_;
  Range x_, y_;
  double step_x_ = 1, step_y_ = 1;
};

bool drawable(const Point& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

std::string marker(std::size_t index, double x, double y) {
  static constexpr std::array<const char*, kMarkers> kShapes = {
      "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
      "M-3.6-3.6h7.2v7.2h-7.2z",
      "M0-4.6L4.4 3.6H-4.4z",
      "M0-5L5 0L0 5L-5 0z",
      "M-4-4L4 4M-4 4L4-4",
      "M-5 0H5M0-5V5"};
  return fmt::format("<path class=\"m s{}\" d=\"{}\" transform=\"translate({:.1f} {:.1f})\" />",
                     index % kMarkers, kShapes[index % kMarkers], x, y);
}

std::string interval_lines(const Plot& plot, const Point& point, std::size_t index) {
  std::string out;
  const auto line = [&](double x1, double y1, double x2, double y2) {
    out += fmt::format("<line class=\"i s{}\" x1={:.1f} y1={:.1f} x2={:.1f} y2={:.1f} />",
                       index % kMarkers, x1, y1, x2, y2);
  };
  const double x = plot.at_x(point.x), y = plot.at_y(point.y);
  if (point.x_low && point.x_high && std::isfinite(*point.x_low) && std::isfinite(*point.x_high)) {
    line(plot.at_x(*point.x_low), y, plot.at_x(*point.x_high), y);
  }
  if (point.y_low && point.y_high) line(x, plot.at_y(*point.y_low), x, plot.at_y(*point.y_high));
  return out;
}

std::string plotted(const Chart& chart) {
  const Plot plot(chart);
  std::string out = plot.axes();
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    std::string path, marks;
    for (const Point& point : chart.series[i].points) {
      if (!drawable(point)) continue;
      const double x = plot.at_x(point.x), y = plot.at_y(point.y);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
      marks += interval_lines(plot, point, i);
      if (chart.series[i].points.size() <= kMostMarks) marks += marker(i, x, y);
    }
    if (chart.kind == ChartKind::kLines && !path.empty()) {
      out += fmt::format("<path class=\"l s{}\" d=\"{}\" />", i % kMarkers, path);
    }
    out += marks;
  }
  return out;
}

std::string stacked(const Chart& chart, double height) {
  double most = 0;
  std::vector<double> ends(chart.categories.size(), 0);
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      most = std::max(most, ends.at(static_cast<std::size_t>(point.x)) += point.y);
    }
  }
  if (most <= 0) most = 1;
  std::fill(ends.begin(), ends.end(), 0);
  std::string out;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    for (const Point& point : chart.series[i].points) {
      const auto bar = static_cast<std::size_t>(point.x);
      const double scale = (kWidth - 2 * kRight) / most;
      out += fmt::format("<rect class=\"b s{}\" x={:.1f} y={:.1f} width={:.1f} height={:.1f} />",
                         i % kMarkers, kRight + ends.at(bar) * scale,
                         static_cast<double>(bar) * (kBarHeight + kBarText) + kBarText + 3,
                         point.y * scale, kBarHeight - 6);
      ends.at(bar) += point.y;
    }
  }
  for (std::size_t bar = 0; bar < chart.categories.size(); ++bar) {
    out += fmt::format("<text x={:.1f} y={:.1f}>{}: {:.3g}</text>", kRight,
                       static_cast<double>(bar) * (kBarHeight + kBarText) + kBarText,
                       escape_html(chart.categories[bar]), ends[bar]);
  }
  return out + fmt::format("<text x={:.1f} y={:.1f}>{}</text>", kRight, height - 6,
                           escape_html(chart.x.label));
}

}  // namespace

std::string escape_html(std::string_view text, Lines lines) {
  std::string out;
  for (const char c : printable(text, lines)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string to_svg(const Chart& chart, const std::string& id) {
  const bool bars = chart.kind == ChartKind::kStacked;
  const double height =
      bars ? static_cast<double>(chart.categories.size()) * (kBarHeight + kBarText) + 24 : kHeight;
  return fmt::format(
      "<svg viewBox=\"0 0 {} {:.0f}\" role=img aria-labelledby={}><title id={}>{}: {} against {}"
      "</title>{}</svg>",
      kWidth, height, id, id, escape_html(chart.title), escape_html(bars ? "parts" : chart.y.label),
      escape_html(chart.x.label), bars ? stacked(chart, height) : plotted(chart));
}

std::string legend_marker(std::size_t index) {
  return fmt::format("<svg class=key viewBox=\"0 0 14 14\" aria-hidden=true>{}</svg>",
                     marker(index, 7, 7));
}

Table chart_table(const Chart& chart) {
  Table table{.title = "", .columns = {{"series"}, {chart.x.label}, {chart.y.label}}, .rows = {}};
  const bool bars = chart.kind == ChartKind::kStacked;
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      const auto figure = [](const Axis& axis, double value, std::optional<double> low,
                             std::optional<double> high) {
        return axis.unit == Unit::kShare ? percent_interval(value, low, high, 2)
                                         : decimal_interval(value, low, high, 4);
      };
      table.rows.push_back({series.name,
                            bars ? chart.categories.at(static_cast<std::size_t>(point.x))
                                 : figure(chart.x, point.x, point.x_low, point.x_high),
                            figure(chart.y, point.y, point.y_low, point.y_high)});
    }
  }
  return table;
}

}  // namespace asdbench
