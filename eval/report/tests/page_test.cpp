// The HTML page as a document: balanced, self-contained, and deaf to what replies say.
#include <gmock/gmock.h>

#include <regex>
#include <set>

#include "eval/report/svg.h"
#include "eval/report/tests/hostile_internal.h"

namespace asdbench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Element {
  std::string name, attributes;
};

/// Start tags of a page in order; script and style are skipped. Fails on a tag that closes another.
std::vector<Element> elements_of(const std::string& page) {
  static const std::set<std::string> kVoid = {"meta", "input"};
  std::vector<Element> elements;
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) {
      ADD_FAILURE() << "a tag is left open";
      break;
    }
    std::string tag = page.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.starts_with('!')) continue;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) {
        ADD_FAILURE() << "</" << tag.substr(1) << "> closes "
                      << (open.empty() ? "nothing" : open.back());
        break;
      }
      open.pop_back();
      continue;
    }
    const std::size_t space = tag.find_first_of(" /");
    Element element{tag.substr(0, space), space == std::string::npos ? "" : tag.substr(space)};
    if (element.name == "script" || element.name == "style") {
      at = page.find("</" + element.name, at);
    }
    if (!kVoid.contains(element.name) && !tag.ends_with('/')) open.push_back(element.name);
    elements.push_back(std::move(element));
  }
  EXPECT_TRUE(open.empty());
  return elements;
}

std::string page_of(const std::string& text) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  fill(store, text);
  return make_reporter("html")->render(make_report(store, {}));
}

TEST(PageTest, IsOneBalancedDocumentWithoutSources) {
  const std::string page = page_of("");
  std::set<std::string> ids, targets;
  for (const Element& element : elements_of(page)) {
    std::smatch match;
    static const std::regex kId(R"re(\sid="?([^"\s]+))re"), kHref(R"re(\shref="#([^"]+)")re"),
        kLabel(R"re(aria-labelledby="?([^"\s]+))re");
    if (std::regex_search(element.attributes, match, kId)) {
      EXPECT_TRUE(ids.insert(match[1]).second) << "twice: " << match[1];
    }
    for (const std::regex* reference : {&kHref, &kLabel}) {
      if (std::regex_search(element.attributes, match, *reference)) targets.insert(match[1]);
    }
    EXPECT_THAT(element.attributes, Not(HasSubstr("src="))) << element.name;
    EXPECT_NE(element.name, "link");
    EXPECT_NE(element.name, "img");
  }
  for (const std::string& target : targets) EXPECT_TRUE(ids.contains(target)) << target;
  EXPECT_GT(targets.size(), 10U);
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, HasSubstr("@media print"));
  EXPECT_LT(page.size(), 200'000U);
}

TEST(PageTest, HostileTextAddsNoElement) {
  const std::vector<Element> calm = elements_of(page_of("")),
                             hostile = elements_of(page_of(kHostile));
  ASSERT_EQ(calm.size(), hostile.size());
  // Names of elements and of attributes are equal; quoted values and places in drawings may differ.
  static const std::regex kValues(R"re("[^"]*"|=[-\w.]+)re");
  for (std::size_t i = 0; i < calm.size(); ++i) {
    EXPECT_EQ(calm[i].name, hostile[i].name) << i;
    EXPECT_EQ(std::regex_replace(calm[i].attributes, kValues, ""),
              std::regex_replace(hostile[i].attributes, kValues, ""))
        << i;
  }
  const std::string page = page_of(kHostile);
  for (const char* steering : {"\x1b", "\xc2\x9b", "\xe2\x80\xae", "\xff"}) {
    EXPECT_THAT(page, Not(HasSubstr(steering)));
  }
}

TEST(PageTest, TheFirstDifferenceIsMarked) {
  const std::string page = page_of("");
  EXPECT_THAT(page, HasSubstr("<span class=same>Same start, then th</span><mark>i</mark>s"));
  EXPECT_THAT(page, HasSubstr("<span class=same>Same start, then th</span><mark>a</mark>t"));
}

TEST(PageTest, AChartOfOddNumbersStaysADrawing) {
  Chart chart{.title = "odd", .x = {.label = "x"}, .y = {.label = "y"}};
  chart.series = {{.name = "a", .points = {{.x = 1, .y = 1}}},
                  {.name = "b", .points = {{.x = HUGE_VAL, .y = 0}, {.x = 0, .y = -HUGE_VAL}}},
                  {.name = "none", .points = {}}};
  for (const ChartKind kind : {ChartKind::kScatter, ChartKind::kLines}) {
    chart.kind = kind;
    const std::string svg = to_svg(chart, "c");
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    elements_of(svg);
  }
}

}  // namespace
}  // namespace asdbench
