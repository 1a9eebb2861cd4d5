// The report as one HTML file that needs nothing else: style, drawings and a little script inside.
#include <fmt/format.h>

#include "eval/report/page_internal.h"
#include "eval/report/reporter.h"
#include "eval/report/svg.h"

namespace asdbench {
namespace {

/// r: to the right; n: a figure or a short name, never broken over lines.
std::string_view class_of(const Column& column, const std::string& cell) {
  constexpr std::size_t kShort = 28;
  if (column.align == Align::kRight) return "\"r n\"";
  return cell.size() <= kShort ? "n" : "w";
}

std::string html_table(const Table& table, const std::string& caption) {
  std::string out = "<div class=scroll tabindex=0 role=region aria-label=\"" +
                    escape_html(caption) + "\"><table class=sortable>";
  if (!table.title.empty()) out += "<caption>" + escape_html(table.title) + "</caption>";
  out += "<thead><tr>";
  for (const Column& column : table.columns) {
    out += fmt::format("<th scope=col{}>{}</th>", column.align == Align::kRight ? " class=r" : "",
                       escape_html(column.header));
  }
  out += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += fmt::format("<td class={}>{}</td>", class_of(table.columns[i], row[i]),
                         escape_html(row[i]));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string html_chart(const Chart& chart, const std::string& id) {
  std::string out = "<figure>" + to_svg(chart, id) + "<figcaption><b>" + escape_html(chart.title) +
                    "</b><ul class=legend>";
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    out += "<li>" + legend_marker(i) + escape_html(chart.series[i].name) + "</li>";
  }
  return out + "</ul></figcaption><details><summary>numbers</summary>" +
         html_table(chart_table(chart), chart.title) + "</details></figure>\n";
}

/// A reply with the first difference marked: one character, or the end.
std::string marked(const std::string& text, std::size_t common, bool cut_front, bool cut_end) {
  std::size_t next = std::min(common, text.size());
  if (next < text.size()) ++next;
  while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
  const std::string_view all = text;
  const std::string_view same = all.substr(0, std::min(common, text.size()));
  const std::string_view first = all.substr(same.size(), next - same.size());
  return fmt::format("<pre>{}<span class=same>{}</span><mark>{}</mark>{}{}</pre>",
                     cut_front ? "… " : "", escape_html(same, Lines::kKept),
                     first.empty()   ? "(ends here)"
                     : first == "\n" ? "↵\n"
                                     : escape_html(first, Lines::kKept),
                     escape_html(all.substr(next), Lines::kKept), cut_end ? " …" : "");
}

std::string html_pair(const TextPair& pair) {
  return fmt::format(
      "<details class=pair><summary>{}: {} → {}</summary><div class=two>"
      "<section aria-label=\"{}\"><h4>{}</h4>{}</section>"
      "<section aria-label=\"{}\"><h4>{}</h4>{}</section></div></details>\n",
      escape_html(pair.title), escape_html(pair.left_name), escape_html(pair.right_name),
      escape_html(pair.left_name), escape_html(pair.left_name),
      marked(pair.left, pair.common, pair.cut_front, pair.cut_left), escape_html(pair.right_name),
      escape_html(pair.right_name),
      marked(pair.right, pair.common, pair.cut_front, pair.cut_right));
}

std::string html_section(const Section& section) {
  std::string out =
      fmt::format("<section id=\"{}\" aria-labelledby=\"h-{}\"><h2 id=\"h-{}\">{}</h2>",
                  escape_html(section.id), escape_html(section.id), escape_html(section.id),
                  escape_html(section.title));
  if (!section.note.empty()) out += "<p class=note>" + escape_html(section.note) + "</p>";
  std::string charts, rest;
  std::size_t number = 0;
  for (const Content& block : section.blocks) {
    if (const auto* table = std::get_if<Table>(&block)) {
      rest += html_table(*table, table->title.empty() ? section.title : table->title);
    } else if (const auto* chart = std::get_if<Chart>(&block)) {
      charts += html_chart(*chart, fmt::format("c-{}-{}", escape_html(section.id), ++number));
    } else if (const auto* pair = std::get_if<TextPair>(&block)) {
      rest += html_pair(*pair);
    }
  }
  if (!charts.empty()) charts = "<div class=charts>" + charts + "</div>\n";
  return out + charts + rest + "</section>\n";
}

class HtmlReporter final : public Reporter {
 public:
  std::string render(const Report& report) const override {
    std::string nav = "<li><a href=\"#matrix\">Matrix</a></li>";
    std::string body;
    for (const Section& section : report.sections) {
      nav += fmt::format("<li><a href=\"#{}\">{}</a></li>", escape_html(section.id),
                         escape_html(section.title));
      body += html_section(section);
    }
    // No source but the page itself: text that slipped through could not load or send anything.
    return fmt::format(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content=\"width=device-width, initial-scale=1\">"
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
        "'unsafe-inline'; script-src 'unsafe-inline'\">"
        "<meta name=color-scheme content=\"light "
        "dark\"><title>{0}</title>\n<style>\n{1}</style></head>\n"
        "<body><a class=skip href=\"#main\">Skip to the results</a><header><h1>{0}</h1>"
        "<nav aria-label=Sections><ul>{2}</ul></nav></header>\n<main id=main>"
        "<section id=matrix aria-labelledby=h-matrix><h2 id=h-matrix>Matrix</h2>"
        "<p class=note>A dash is an undefined figure. Select a heading to sort.</p>"
        "<label class=filter hidden>Filter rows <input type=search "
        "id=filter></label>{3}</section>\n{4}"
        "</main>\n<script>\n{5}</script></body></html>\n",
        escape_html(report.title), kPageStyle, nav,
        report.all_cells.rows.empty() ? std::string("<p>The database holds no cells yet.</p>")
                                      : html_table(report.all_cells, "Matrix"),
        body, kPageScript);
  }
};

}  // namespace

std::unique_ptr<Reporter> make_html_reporter() { return std::make_unique<HtmlReporter>(); }

}  // namespace asdbench
