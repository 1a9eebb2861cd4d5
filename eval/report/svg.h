// Charts as SVG text: colours come from the page's style, so that one drawing serves light, dark
// and print.
#pragma once

#include <string>
#include <string_view>

#include "eval/report/report.h"

namespace asdbench {

/// Text for HTML and XML, attributes included: nothing of it is read as markup.
std::string escape_html(std::string_view text, Lines lines = Lines::kReplaced);

/// One <svg> with a title; coordinates that are not finite are left out. `id` is unique in the
/// page.
std::string to_svg(const Chart& chart, const std::string& id);

/// The marker of series `index`, as a small <svg> for a legend.
std::string legend_marker(std::size_t index);

/// Numbers of a chart as a table: the same for people who do not see it.
Table chart_table(const Chart& chart);

}  // namespace asdbench
