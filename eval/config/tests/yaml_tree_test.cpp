// Hostile YAML: bounded in size, depth and time, and refused in words.
#include "eval/config/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace asdbench {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(const std::string& text) {
  try {
    parse_yaml(text, "f.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(YamlTree, KeepsOrderLinesAndQuotes) {
  const YamlNode root = parse_yaml("b: 1\na:\n  - \"2\"\n  - {c: ~}\n", "f.yaml");
  ASSERT_EQ(root.kind, YamlKind::kMap);
  ASSERT_EQ(root.entries.size(), 2u);
  EXPECT_EQ(root.entries[0].key, "b");
  EXPECT_FALSE(root.entries[0].value.quoted);
  const YamlNode& list = root.find("a")->value;
  ASSERT_EQ(list.kind, YamlKind::kList);
  EXPECT_TRUE(list.items[0].quoted);
  EXPECT_EQ(list.items[0].text, "2");
  EXPECT_EQ(list.items[0].line, 3);
  EXPECT_EQ(list.items[1].find("c")->value.kind, YamlKind::kNull);
  EXPECT_EQ(list.items[1].find("c")->line, 4);
  EXPECT_EQ(root.find("d"), nullptr);
}

TEST(YamlTree, TakesByteOrderMarkWindowsLineEndsAndUnicode) {
  const YamlNode root = parse_yaml("\xEF\xBB\xBFname: caf\xC3\xA9 \xF0\x9F\x98\x80\r\n", "f.yaml");
  EXPECT_EQ(root.find("name")->value.text, "caf\xC3\xA9 \xF0\x9F\x98\x80");
}

TEST(YamlTree, DepthIsBoundedForEveryKindOfNesting) {
  for (const std::string unit : {"[", "{", "[{", "{a: ", "- ", "? ", "[? ", "{? ", "[a: "}) {
    EXPECT_THAT(error_of(repeated(unit, 100'000)), StartsWith("f.yaml:1: ")) << unit;
  }
  EXPECT_THAT(error_of(repeated("[", 100'000) + repeated("]", 100'000)),
              HasSubstr("nested more than 16 deep"));
  EXPECT_THAT(error_of(repeated("- ", 100'000) + "x"), HasSubstr("nested more than 16 deep"));
  std::string stairs;
  for (int i = 0; i < 1000; ++i) stairs += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(error_of(stairs), HasSubstr("nested more than 16 deep"));
  EXPECT_EQ(error_of(repeated("[", 16) + repeated("]", 16)), "no error");
  EXPECT_EQ(error_of(repeated("[", 17) + repeated("]", 17)),
            "f.yaml:1: " + repeated("[0]", 16) + ": nested more than 16 deep");
}

TEST(YamlTree, RefusesAnchorsAliasesTagsAndSecondDocuments) {
  EXPECT_EQ(error_of("a: &x [1]\nb: *x\n"),
            "f.yaml:1: a: anchors (&name) are not supported; write the value out");
  EXPECT_EQ(error_of("&x a: 1\n"),
            "f.yaml:1: anchors (&name) are not supported; write the value out");
  EXPECT_THAT(error_of("a: *x\n"), StartsWith("f.yaml:1: "));
  EXPECT_EQ(
      error_of("a: !!python/object x\n"),
      "f.yaml:1: a: the tag \"tag:yaml.org,2002:python/object\" is not supported; write the plain "
      "value");
  EXPECT_THAT(error_of("a: !t [1]\n"), HasSubstr("the tag \"!t\" is not supported"));
  EXPECT_THAT(error_of("a: !t {}\n"), HasSubstr("the tag \"!t\" is not supported"));
  EXPECT_EQ(error_of("a: 1\n---\nb: 2\n"),
            "f.yaml:2: a second document begins; expected one document a file");
  // The bomb of nested aliases ends at its first anchor.
  EXPECT_THAT(error_of("a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\n"),
              HasSubstr("anchors"));
}

TEST(YamlTree, RefusesKeysThatAreNoNames) {
  EXPECT_EQ(error_of("? [a]\n: 1\n"),
            "f.yaml:1: a key is a list or a map; expected a name (is a bracket left open?)");
  EXPECT_EQ(error_of("? {a: 1}\n: 1\n"),
            "f.yaml:1: a key is a list or a map; expected a name (is a bracket left open?)");
  EXPECT_EQ(error_of("~: 1\n"), "f.yaml:1: a key is empty; expected a name");
  EXPECT_EQ(error_of("{: 1}"), "f.yaml:1: a key is empty; expected a name");
  EXPECT_EQ(error_of("a: {b: 1, b: 2}\n"), "f.yaml:1: a: the key \"b\" is given twice");
  EXPECT_EQ(error_of("a:\n - b: 1\n   \"b\": 2\n"), "f.yaml:3: a[0]: the key \"b\" is given twice");
}

TEST(YamlTree, RefusesBytesThatAreNoText) {
  EXPECT_EQ(error_of(std::string("a: 1\nb: \0\n", 10)),
            "f.yaml:2: control character 0x00; expected text");
  EXPECT_EQ(error_of("a: \x1b[0m\n"), "f.yaml:1: control character 0x1b; expected text");
  EXPECT_EQ(error_of("a: \x7f\n"), "f.yaml:1: control character 0x7f; expected text");
  for (const std::string bad :
       {"\xFF", "\xC0\x80", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\x80", "\xE2\x82", "\xF0\x9F\x98"}) {
    EXPECT_THAT(error_of("\n\na: " + std::string(bad)), HasSubstr("f.yaml:3: byte 0x")) << bad;
  }
  EXPECT_THAT(error_of(std::string("\xFE\xFF\0a", 4)), HasSubstr("not UTF-8"));
}

TEST(YamlTree, RefusesTooManyBytesBeforeParsing) {
  EXPECT_EQ(error_of(std::string(kLargestConfigBytes + 1, '[')),
            "f.yaml: more than 1048576 bytes; expected at most that");
  EXPECT_EQ(error_of("# " + std::string(kLargestConfigBytes - 2, 'x')), "no error");
}

TEST(YamlTree, ManyEntriesTakeLinearTime) {
  // Half a million values and 60,000 keys: seconds at most, which the time limit of the test
  // guards.
  EXPECT_EQ(error_of("[" + repeated("a,", 500'000) + "]"), "no error");
  std::string keys;
  for (int i = 0; i < 60'000; ++i) keys += "key" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(error_of(keys), "no error");
}

TEST(YamlTree, SyntaxErrorsNameTheLine) {
  EXPECT_THAT(error_of("a: 1\nb: [1, 2\n"),
              StartsWith("f.yaml:2: not valid YAML: end of sequence"));
  EXPECT_THAT(error_of("a: 1\n  b: 2\n"), StartsWith("f.yaml:2: not valid YAML: "));
  EXPECT_THAT(error_of("a: \"x\n"), StartsWith("f.yaml:1: not valid YAML: "));
  EXPECT_THAT(error_of("%YAML 9.9\n---\na: 1\n"), StartsWith("f.yaml:1: not valid YAML: "));
}

}  // namespace
}  // namespace asdbench
