// A scan from left to right, then three passes over the tokens.
#include "tasks/common/math/tokens.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "tasks/common/characters.h"

namespace asdbench::math {
namespace {

using Names = std::set<std::string_view>;

// Commands without a meaning for the value; those of the second set take their group along.
const Names kDropped = {
    "left",      "right",        "big",       "Big",         "bigg",       "Bigg",     "bigl",
    "bigr",      "Bigl",         "Bigr",      "biggl",       "biggr",      "Biggl",    "Biggr",
    "middle",    "displaystyle", "textstyle", "scriptstyle", "limits",     "nolimits", "mathstrut",
    "strut",     "rm",           "bf",        "it",          "sf",         "tt",       "boxed",
    "fbox",      "pounds",       "euro",      "nobreak",     "allowbreak", "mathord",  "mathopen",
    "mathclose", "ensuremath",   "mathop",    "hfill",       "null"};
const Names kDroppedWithGroup = {"hspace", "vspace",    "phantom", "hphantom", "vphantom",
                                 "color",  "textcolor", "label",   "tag"};
const Names kSpaces = {"quad", "qquad", "enspace", "thinspace", "medspace", "thickspace", "space"};
const Names kTextCommands = {"text",   "textbf", "textit", "textrm",       "textnormal", "mathrm",
                             "mathbf", "mathit", "mbox",   "operatorname", "texttt",     "textsf",
                             "mathsf", "mathtt", "hbox",   "boldsymbol",   "bm",         "textup"};
const Names kStyles = {"mathbb", "mathcal", "mathfrak", "mathscr"};

const std::map<std::string_view, std::string_view> kRenamed = {{"dfrac", "frac"},
                                                               {"tfrac", "frac"},
                                                               {"cfrac", "frac"},
                                                               {"dbinom", "binom"},
                                                               {"tbinom", "binom"},
                                                               {"varnothing", "emptyset"},
                                                               {"simeq", "approx"},
                                                               {"thickapprox", "approx"},
                                                               {"approxeq", "approx"},
                                                               {"Rightarrow", "implies"},
                                                               {"Longrightarrow", "implies"},
                                                               {"iff", "implies"},
                                                               {"Leftrightarrow", "implies"},
                                                               {"therefore", "implies"},
                                                               {"ldots", "dots"},
                                                               {"cdots", "dots"},
                                                               {"dotsc", "dots"},
                                                               {"dotsb", "dots"},
                                                               {"dotsm", "dots"},
                                                               {"dotso", "dots"},
                                                               {"vdots", "dots"},
                                                               {"ddots", "dots"},
                                                               {"backslash", "setminus"},
                                                               {"smallsetminus", "setminus"},
                                                               {"lg", "log"},
                                                               {"ctg", "cot"},
                                                               {"tg", "tan"},
                                                               {"arctg", "arctan"},
                                                               {"cosec", "csc"},
                                                               {"varphi", "phi"},
                                                               {"varepsilon", "epsilon"},
                                                               {"vartheta", "theta"},
                                                               {"asin", "arcsin"},
                                                               {"acos", "arccos"},
                                                               {"atan", "arctan"},
                                                               {"vee", "or"},
                                                               {"wedge", "and"},
                                                               {"bar", "overline"}};

// Commands that are one symbol.
const std::map<std::string_view, std::string_view> kSymbols = {
    {"lvert", "|"},  {"rvert", "|"},     {"vert", "|"},      {"lbrace", "\\{"}, {"rbrace", "\\}"},
    {"le", "<="},    {"leq", "<="},      {"leqslant", "<="}, {"leqq", "<="},    {"ge", ">="},
    {"geq", ">="},   {"geqslant", ">="}, {"geqq", ">="},     {"ne", "!="},      {"neq", "!="},
    {"lt", "<"},     {"gt", ">"},        {"cdot", "*"},      {"times", "*"},    {"ast", "*"},
    {"div", "/"},    {"lbrack", "["},    {"rbrack", "]"},    {"colon", ":"},    {"lparen", "("},
    {"rparen", ")"}, {"land", "and"},    {"lor", "or"},      {"vee", "or"},     {"wedge", "and"},
    {"percent", "%"}};

// Bare words that are commands written without the backslash.
const std::map<std::string_view, std::string_view> kPlainWords = {
    {"sin", "sin"},       {"cos", "cos"},        {"tan", "tan"},       {"cot", "cot"},
    {"sec", "sec"},       {"csc", "csc"},        {"arcsin", "arcsin"}, {"arccos", "arccos"},
    {"arctan", "arctan"}, {"asin", "arcsin"},    {"acos", "arccos"},   {"atan", "arctan"},
    {"sinh", "sinh"},     {"cosh", "cosh"},      {"tanh", "tanh"},     {"log", "log"},
    {"ln", "ln"},         {"exp", "exp"},        {"sqrt", "sqrt"},     {"pi", "pi"},
    {"Pi", "pi"},         {"theta", "theta"},    {"alpha", "alpha"},   {"beta", "beta"},
    {"gamma", "gamma"},   {"phi", "phi"},        {"omega", "omega"},   {"lambda", "lambda"},
    {"infty", "infty"},   {"infinity", "infty"}, {"inf", "infty"},     {"oo", "infty"},
    {"frac", "frac"},     {"dfrac", "frac"},     {"tfrac", "frac"},    {"binom", "binom"},
    {"gcd", "gcd"},       {"lcm", "lcm"},        {"max", "max"},       {"min", "min"},
    {"pm", "pm"},         {"cup", "cup"}};

struct Utf8Name {
  std::string_view bytes;
  std::string_view latex;  // lexed in its place
};
// What models write instead of commands.
constexpr auto kUtf8 = std::to_array<Utf8Name>({
    {"\u03c0", "\\pi "},       {"\u221a", "\\sqrt "},     {"\u221e", "\\infty "},
    {"\u2264", "\\le "},       {"\u2265", "\\ge "},       {"\u2260", "\\ne "},
    {"\u00d7", "*"},           {"\u00b7", "*"},           {"\u22c5", "*"},
    {"\u2217", "*"},           {"\u00f7", "/"},           {"\u2215", "/"},
    {"\u2212", "-"},           {"\u2013", "-"},           {"\u00b1", "\\pm "},
    {"\u2213", "\\mp "},       {"\u222a", "\\cup "},      {"\u2229", "\\cap "},
    {"\u2208", "\\in "},       {"\u2209", "\\notin "},    {"\u2205", "\\emptyset "},
    {"\u00d8", "\\emptyset "}, {"\u00b0", "^{\\circ}"},   {"\u2218", "\\circ "},
    {"\u2248", "\\approx "},   {"\u2211", "\\sum "},      {"\u2216", "\\setminus "},
    {"\u27e8", "\\langle "},   {"\u27e9", "\\rangle "},   {"\u2026", "\\dots "},
    {"\u22ef", "\\dots "},     {"\u21d2", "\\implies "},  {"\u2220", "\\angle "},
    {"\u211d", "\\mathbb{R}"}, {"\u2124", "\\mathbb{Z}"}, {"\u2115", "\\mathbb{N}"},
    {"\u211a", "\\mathbb{Q}"}, {"\u2102", "\\mathbb{C}"}, {"\u03b1", "\\alpha "},
    {"\u03b2", "\\beta "},     {"\u03b3", "\\gamma "},    {"\u03b4", "\\delta "},
    {"\u03b8", "\\theta "},    {"\u03bb", "\\lambda "},   {"\u03bc", "\\mu "},
    {"\u03c3", "\\sigma "},    {"\u03c6", "\\phi "},      {"\u03c9", "\\omega "},
    {"\u00bd", "\\frac12"},    {"\u00bc", "\\frac14"},    {"\u00be", "\\frac34"},
    {"\u2153", "\\frac13"},    {"\u2154", "\\frac23"},    {"\u00a0", " "},
    {"\u2009", " "},           {"\u202f", " "},           {"\u2032", "'"},
    {"\u2223", "|"},
});
constexpr std::array<std::string_view, 6> kCurrencies = {"\u20ac", "\u00a3", "\u00a5",
                                                         "\u20b9", "\u20a9", "\u20bd"};
// Exponents as characters of their own: superscript 0 to 9.
constexpr std::array<std::string_view, 10> kSuperscripts = {"\u2070", "\u00b9", "\u00b2", "\u00b3",
                                                            "\u2074", "\u2075", "\u2076", "\u2077",
                                                            "\u2078", "\u2079"};

// Words that can stand behind a number. Directions, weekdays, colours, names, "even" and their like
// are answers of their own and must never be listed.
const Names kUnits = {
    "mm",          "cm",        "dm",         "km",         "in",          "inch",
    "inches",      "ft",        "foot",       "feet",       "yd",          "yard",
    "yards",       "mi",        "mile",       "miles",      "meter",       "meters",
    "metre",       "metres",    "cms",        "centimeter", "centimeters", "centimetre",
    "centimetres", "kilometer", "kilometers", "kilometre",  "kilometres",  "millimeter",
    "millimeters", "sq",        "square",     "cubic",      "acre",        "acres",
    "mg",          "kg",        "gram",       "grams",      "kilogram",    "kilograms",
    "lb",          "lbs",       "pound",      "pounds",     "oz",          "ounce",
    "ounces",      "ton",       "tons",       "ml",         "mL",          "liter",
    "liters",      "litre",     "litres",     "gal",        "gallon",      "gallons",
    "cup",         "cups",      "ms",         "sec",        "secs",        "second",
    "seconds",     "min",       "mins",       "minute",     "minutes",     "hr",
    "hrs",         "hour",      "hours",      "day",        "days",        "week",
    "weeks",       "month",     "months",     "year",       "years",       "mph",
    "kph",         "degree",    "degrees",    "deg",        "radian",      "radians",
    "rad",         "unit",      "units",      "dollar",     "dollars",     "cent",
    "cents",       "usd",       "USD",        "euro",       "euros",       "rupees",
    "yuan",        "yen",       "way",        "ways",       "point",       "points",
    "people",      "students",  "apples",     "digits",     "integers",    "solutions",
    "times",       "pages",     "boxes",      "marbles",    "items",       "cards",
    "books",       "coins",     "edges",      "faces",      "vertices",    "sides",
    "th",          "st",        "nd",         "rd",         "per"};

// Text behind a number that tells values apart instead of measuring them.
const Names kTellingText = {"am", "pm", "a.m", "p.m", "a.m.", "p.m."};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), to_lower);
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool has_word(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (is_letter(text[i]) && is_letter(text[i + 1])) return true;
  }
  return false;
}

class Lexer {
 public:
  explicit Lexer(Tokenized& out) : out_(out) {}

  void run(std::string_view text, int depth) {
    for (std::size_t at = 0; at < text.size() && !out_.too_long;) {
      at += one(text.substr(at), depth);
    }
  }

 private:
  // Lexes what stands at the start of `rest`; returns its length, at least 1.
  std::size_t one(std::string_view rest, int depth) {
    const char c = rest[0];
    if (is_space(c) || c == '~') {
      space_ = true;
      return 1;
    }
    if (c == '\\') return backslash(rest, depth);
    if (is_digit(c) || (c == '.' && rest.size() > 1 && is_digit(rest[1]) && !after_number_)) {
      return number(rest);
    }
    if (is_letter(c)) return letters(rest);
    if (c == '$') return 1;
    if (static_cast<unsigned char>(c) >= 0x80) return utf8(rest, depth);
    return symbol(rest);
  }

  void add(TokenKind kind, std::string_view text) {
    if (out_.tokens.size() >= kMaxTokens) {
      out_.too_long = true;
      return;
    }
    out_.tokens.push_back({kind, std::string(text), space_});
    space_ = false;
    after_number_ = kind == TokenKind::kNumber;
    thin_joined_ = false;
  }

  std::size_t number(std::string_view rest) {
    std::size_t end = 0;
    while (end < rest.size() && is_digit(rest[end])) ++end;
    if (end + 1 < rest.size() && rest[end] == '.' && is_digit(rest[end + 1])) {
      ++end;
      while (end < rest.size() && is_digit(rest[end])) ++end;
    }
    add(TokenKind::kNumber, rest.substr(0, end));
    return end;
  }

  std::size_t letters(std::string_view rest) {
    std::size_t end = 0;
    while (end < rest.size() && is_letter(rest[end])) ++end;
    word(rest.substr(0, end));
    return end;
  }

  // Whether a unit may follow: "30 sec" is a time, "\\sec x" a function.
  bool unit_place() const {
    return !out_.tokens.empty() &&
           (out_.tokens.back().kind == TokenKind::kNumber || out_.tokens.back().is("}"));
  }

  void word(std::string_view text) {
    if (text.size() == 1) return add(TokenKind::kLetter, text);
    if (unit_place() && is_unit(text)) return add(TokenKind::kWord, text);
    if (text == "and" || text == "or") return add(TokenKind::kSymbol, text);
    if (text == "percent" || text == "pct") return add(TokenKind::kSymbol, "%");
    if (const auto plain = kPlainWords.find(text); plain != kPlainWords.end()) {
      return add(TokenKind::kCommand, plain->second);
    }
    // "sinx": a function and its argument.
    const std::string_view head = text.substr(0, text.size() - 1);
    const auto plain = kPlainWords.find(head);
    if (plain != kPlainWords.end() && head.size() == 3 && !is_unit(text)) {
      add(TokenKind::kCommand, plain->second);
      return add(TokenKind::kLetter, text.substr(head.size()));
    }
    add(TokenKind::kWord, text);
  }

  std::size_t utf8(std::string_view rest, int depth) {
    for (const Utf8Name& name : kUtf8) {
      if (rest.starts_with(name.bytes)) {
        run(name.latex, depth);
        return name.bytes.size();
      }
    }
    for (const std::string_view currency : kCurrencies) {
      if (rest.starts_with(currency)) return currency.size();
    }
    std::string exponent;
    std::size_t length = 0;
    for (bool found = true; found;) {
      found = false;
      for (std::size_t digit = 0; digit < kSuperscripts.size(); ++digit) {
        if (!rest.substr(length).starts_with(kSuperscripts[digit])) continue;
        exponent += static_cast<char>('0' + digit);
        length += kSuperscripts[digit].size();
        found = true;
        break;
      }
    }
    if (length > 0) {
      add(TokenKind::kSymbol, "^");
      add(TokenKind::kNumber, exponent);
      return length;
    }
    // A character of its own; bytes that are no UTF-8 one by one.
    length = 1;
    while (length < rest.size() && (static_cast<unsigned char>(rest[length]) & 0xc0) == 0x80) {
      ++length;
    }
    add(TokenKind::kSymbol, rest.substr(0, length));
    return length;
  }

  std::size_t symbol(std::string_view rest) {
    struct Spelling {
      std::string_view written, meant;
    };
    static constexpr std::array<Spelling, 9> kSpellings = {{{"{,}", "{,}"},
                                                            {"<=", "<="},
                                                            {">=", ">="},
                                                            {"=<", "<="},
                                                            {"!=", "!="},
                                                            {"==", "="},
                                                            {":=", "="},
                                                            {"=>", "=>"},
                                                            {"**", "^"}}};
    for (const Spelling& spelling : kSpellings) {
      if (!rest.starts_with(spelling.written)) continue;
      if (spelling.written == "=>") {
        add(TokenKind::kCommand, "implies");
      } else {
        add(TokenKind::kSymbol, spelling.meant);
      }
      return spelling.written.size();
    }
    if (rest[0] == ',') {
      // ",\!" is a separator of thousands, whatever spaces stand in it.
      std::size_t at = 1;
      while (at < rest.size() && rest[at] == ' ') ++at;
      if (rest.substr(at).starts_with("\\!")) {
        add(TokenKind::kSymbol, "{,}");
        return at + 2;
      }
    }
    add(TokenKind::kSymbol, rest.substr(0, 1));
    return 1;
  }

  std::size_t backslash(std::string_view rest, int depth) {
    if (rest.size() == 1) return 1;  // a stray one at the end
    if (is_letter(rest[1])) return command(rest, depth);
    const char c = rest[1];
    switch (c) {
      case ',':
      case ':':
      case ';':
      case ' ':
      case '\n':
      case '\t':
        if (c == ',' && join_thin(rest)) return 5;
        space_ = true;
        return 2;
      case '!':
      case '$':
      case '(':
      case ')':
      case '[':
      case ']':
        return 2;
      case '{':
        add(TokenKind::kSymbol, "\\{");
        return 2;
      case '}':
        add(TokenKind::kSymbol, "\\}");
        return 2;
      case '|':
        add(TokenKind::kSymbol, "|");
        return 2;
      case '%':
        add(TokenKind::kSymbol, "%");
        return 2;
      case '\\':
        return row_break(rest, depth);
      default:
        add(TokenKind::kSymbol, rest.substr(0, 2));
        return 2;
    }
  }

  // "10\,080": a thin space before exactly three digits.
  bool join_thin(std::string_view rest) {
    if (!after_number_ || space_ || out_.tokens.empty() || rest.size() < 5) return false;
    for (std::size_t i = 2; i < 5; ++i) {
      if (!is_digit(rest[i])) return false;
    }
    if (rest.size() > 5 && (is_digit(rest[5]) || rest[5] == '.')) return false;
    std::string& number = out_.tokens.back().text;
    if (number.find('.') != std::string::npos) return false;
    const bool first = number.size() <= 3;
    if (!first && !thin_joined_) return false;
    number += rest.substr(2, 3);
    thin_joined_ = true;
    return true;
  }

  // Inside an environment a doubled backslash is a row break; elsewhere a command escaped once too
  // often.
  std::size_t row_break(std::string_view rest, int depth) {
    const bool names_end = rest.substr(1).starts_with("\\end{");
    if (environments_ > 0 && !names_end) {
      add(TokenKind::kSymbol, "\\\\");
      return 2;
    }
    if (rest.size() > 2 && (is_letter(rest[2]) || rest[2] == '{' || rest[2] == '}' ||
                            rest[2] == ',' || rest[2] == '!' || rest[2] == '$' || rest[2] == '%')) {
      return 1 + backslash(rest.substr(1), depth);
    }
    space_ = true;
    return 2;
  }

  std::size_t command(std::string_view rest, int depth) {
    std::size_t end = 1;
    while (end < rest.size() && is_letter(rest[end])) ++end;
    const std::string_view name = rest.substr(1, end - 1);
    if (kSpaces.contains(name)) {
      space_ = true;
      return end;
    }
    if (kDropped.contains(name)) {
      if ((name == "left" || name == "right") && end < rest.size() && rest[end] == '.') ++end;
      return end;
    }
    if (kDroppedWithGroup.contains(name)) return group_end(rest, end).value_or(end);
    if (name == "begin" || name == "end") return environment(rest, end, name == "begin");
    if (kTextCommands.contains(name)) return text_command(rest, end, depth);
    if (kStyles.contains(name)) return styled(rest, end, name);
    if (name == "degree" || name == "textdegree") {
      run("^{\\circ}", depth);
      return end;
    }
    if (name == "not") {
      const std::size_t next = skip_spaces(rest, end);
      if (next < rest.size() && rest[next] == '=') {
        add(TokenKind::kSymbol, "!=");
        return next + 1;
      }
    }
    if (const auto symbol = kSymbols.find(name); symbol != kSymbols.end()) {
      add(TokenKind::kSymbol, symbol->second);
      return end;
    }
    const auto renamed = kRenamed.find(name);
    add(TokenKind::kCommand, renamed == kRenamed.end() ? name : renamed->second);
    return end;
  }

  static std::size_t skip_spaces(std::string_view rest, std::size_t at) {
    while (at < rest.size() && is_space(rest[at])) ++at;
    return at;
  }

  // End of the braced group at `at` (spaces skipped); nullopt when there is none that closes.
  static std::optional<std::size_t> group_end(std::string_view rest, std::size_t at) {
    at = skip_spaces(rest, at);
    if (at >= rest.size() || rest[at] != '{') return std::nullopt;
    int open = 0;
    for (; at < rest.size(); ++at) {
      if (rest[at] == '\\') {
        ++at;
      } else if (rest[at] == '{') {
        ++open;
      } else if (rest[at] == '}' && --open == 0) {
        return at + 1;
      }
    }
    return std::nullopt;
  }

  std::size_t environment(std::string_view rest, std::size_t at, bool begin) {
    const auto end = group_end(rest, at);
    if (!end) return at;
    const std::size_t open = rest.find('{', at);
    const std::string_view name = rest.substr(open + 1, *end - open - 2);
    add(begin ? TokenKind::kBegin : TokenKind::kEnd, name);
    environments_ = std::max(0, environments_ + (begin ? 1 : -1));
    if (begin && name == "array") return group_end(rest, *end).value_or(*end);  // its columns
    return *end;
  }

  std::size_t styled(std::string_view rest, std::size_t at, std::string_view name) {
    const std::size_t next = skip_spaces(rest, at);
    if (next >= rest.size()) return at;
    const auto end = group_end(rest, next);
    const std::string_view content =
        end ? trimmed(rest.substr(next + 1, *end - next - 2)) : rest.substr(next, 1);
    add(TokenKind::kLetter, "\\" + std::string(name) + "{" + std::string(content) + "}");
    return end ? *end : next + 1;
  }

  std::size_t text_command(std::string_view rest, std::size_t at, int depth) {
    const auto end = group_end(rest, at);
    if (!end) return at;  // \mathrm e: the content follows as it is
    const std::size_t open = rest.find('{', at);
    std::string content;
    for (std::string_view raw = rest.substr(open + 1, *end - open - 2); !raw.empty();) {
      const bool spacing = raw.size() > 1 && raw[0] == '\\' &&
                           (raw[1] == ' ' || raw[1] == ',' || raw[1] == ';' || raw[1] == ':');
      if (spacing || raw[0] == '~') {
        content += ' ';
        raw.remove_prefix(spacing ? 2 : 1);
      } else {
        content += raw[0];
        raw.remove_prefix(1);
      }
    }
    if (content.starts_with(' ')) space_ = true;
    text(trimmed(content), depth);
    return *end;
  }

  void text(std::string_view content, int depth) {
    std::string_view plain = content;
    while (!plain.empty() && (plain.front() == ',' || plain.front() == ' ')) plain.remove_prefix(1);
    while (!plain.empty() && (plain.back() == ',' || plain.back() == ' ')) plain.remove_suffix(1);
    if (plain.empty() && !content.empty()) return add(TokenKind::kSymbol, ",");
    if (content.empty()) return;
    const std::string folded = lower(plain);
    if (folded == "and" || folded == "or") return add(TokenKind::kSymbol, folded);
    if (kPlainWords.contains(plain) && plain == content && !unit_place()) return word(plain);
    if (folded == "percent" || folded == "pct") return add(TokenKind::kSymbol, "%");
    const bool has_command = [&] {
      for (std::size_t i = 0; i + 1 < content.size(); ++i) {
        if (content[i] == '\\' && (is_letter(content[i + 1]) || content[i + 1] == '%')) return true;
      }
      return false;
    }();
    const bool starts_number =
        is_digit(content[0]) ||
        (content.size() > 1 && (content[0] == '-' || content[0] == '.' || content[0] == '$') &&
         is_digit(content[1]));
    // Numbers, single letters and formulas in a text command are mathematics.
    if (depth < kMaxTextDepth && (has_command || starts_number || !has_word(content))) {
      return run(content, depth + 1);
    }
    add(TokenKind::kText, content);
  }

  static constexpr int kMaxTextDepth = 8;

  Tokenized& out_;
  bool space_ = false;
  bool after_number_ = false;
  bool thin_joined_ = false;  // the last number got a group behind a thin space
  int environments_ = 0;
};

// ------------------------------------------------------------------------------ passes

bool opens(const Token& token) {
  return token.is("(") || token.is("[") || token.is("\\{") || token.is_command("langle");
}
bool closes(const Token& token) {
  return token.is(")") || token.is("]") || token.is("\\}") || token.is_command("rangle");
}

// Index of the brace that closes the one at `open`; tokens.size() when there is none.
std::size_t closing_brace(const Tokens& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].is("{")) ++depth;
    if (tokens[i].is("}") && --depth == 0) return i;
  }
  return tokens.size();
}

void trim_edges(Tokens& tokens) {
  std::size_t begin = 0;
  std::size_t end = tokens.size();
  // Each round drops one pair, and finding it costs the length: more than a few are hostile.
  for (int round = 0; round < 16; ++round) {
    while (end > begin && (tokens[end - 1].is(".") || tokens[end - 1].is(",") ||
                           tokens[end - 1].is(";") || tokens[end - 1].is(":"))) {
      --end;
    }
    if (end - begin < 2 || !tokens[begin].is("{") || !tokens[end - 1].is("}")) break;
    if (closing_brace(tokens, begin) != end - 1) break;
    ++begin;
    --end;
  }
  tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(end), tokens.end());
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(begin));
}

bool is_group_of_three(const Token& token, bool may_have_decimals) {
  if (token.kind != TokenKind::kNumber) return false;
  const std::size_t point = token.text.find('.');
  if (point == std::string::npos) return token.text.size() == 3;
  return may_have_decimals && point == 3;
}

// How many tokens from `at` on are one number with separators; 1 when they are not. A run that is
// not well formed as a whole is a list.
std::size_t grouped_number(const Tokens& tokens, std::size_t at, bool bracketed) {
  const std::string& first = tokens[at].text;
  if (first.size() > 3 || first[0] == '0' || first.find('.') != std::string::npos) return 1;
  std::size_t end = at + 1;
  bool plain_comma = false;
  while (end + 1 < tokens.size()) {
    const bool marked = tokens[end].is("{,}");
    const bool tight =
        tokens[end].is(",") && !tokens[end].space_before && !tokens[end + 1].space_before;
    if (!marked && !tight) break;
    if (tokens[end + 1].kind != TokenKind::kNumber) break;
    if (!is_group_of_three(tokens[end + 1], true)) return 1;
    plain_comma = plain_comma || !marked;
    const bool last = tokens[end + 1].text.size() > 3;
    end += 2;
    if (last) break;
  }
  return plain_comma && bracketed ? 1 : end - at;
}

void join_thousands(Tokens& tokens) {
  Tokens joined;
  joined.reserve(tokens.size());
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size();) {
    if (opens(tokens[i])) ++depth;
    if (closes(tokens[i]) && depth > 0) --depth;
    if (tokens[i].kind != TokenKind::kNumber) {
      joined.push_back(std::move(tokens[i++]));
      if (joined.back().is("{,}")) joined.back().text = ",";
      continue;
    }
    const std::size_t count = grouped_number(tokens, i, depth > 0);
    Token number = std::move(tokens[i]);
    for (std::size_t k = 2; k < count; k += 2) number.text += tokens[i + k].text;
    joined.push_back(std::move(number));
    if (count == 1) {
      // Not the start of a number with separators: neither is any later member of its run.
      while (i + 2 < tokens.size() && (tokens[i + 1].is(",") || tokens[i + 1].is("{,}")) &&
             !tokens[i + 1].space_before && !tokens[i + 2].space_before &&
             tokens[i + 2].kind == TokenKind::kNumber) {
        joined.push_back(std::move(tokens[i + 1]));
        joined.back().text = ",";
        joined.push_back(std::move(tokens[i + 2]));
        i += 2;
      }
    }
    i += count;
  }
  tokens = std::move(joined);
}

// Puts the arguments of \frac, \binom, \sqrt, ^ and _ into braces.
class Braces {
 public:
  explicit Braces(Tokens tokens) : in_(std::move(tokens)) {}

  Tokens run() {
    while (at_ < in_.size()) item(0);
    return std::move(out_);
  }

 private:
  static constexpr int kMaxDepth = 200;

  void copy() { out_.push_back(in_[at_++]); }
  void symbol(std::string_view text) {
    out_.push_back({TokenKind::kSymbol, std::string(text), false});
  }

  // One token with its arguments.
  void item(int depth) {
    const Token& token = in_[at_];
    const bool exponent = token.is("^");
    if (exponent || token.is("_")) {
      copy();
      return argument(depth, /*whole_number=*/true, exponent);
    }
    const bool fraction = token.is_command("frac") || token.is_command("binom");
    const bool root = token.is_command("sqrt");
    copy();
    if (fraction) {
      argument(depth, false, false);
      argument(depth, false, false);
    } else if (root) {
      if (at_ < in_.size() && in_[at_].is("[")) {
        while (at_ < in_.size() && !in_[at_].is("]")) copy();
        if (at_ < in_.size()) copy();
      }
      argument(depth, false, true);
    }
  }

  // TeX takes one digit where no brace stands; behind ^ and _ models mean the whole number.
  void argument(int depth, bool whole_number, bool brackets) {
    if (at_ >= in_.size() || depth >= kMaxDepth) return;
    if (in_[at_].is("{")) return group(depth, "}");
    if (brackets && in_[at_].is("(")) return bracketed(depth);
    symbol("{");
    if (whole_number && (in_[at_].is("-") || in_[at_].is("+"))) copy();
    if (at_ < in_.size()) {
      Token& token = in_[at_];
      if (token.kind == TokenKind::kNumber && !whole_number && token.text.size() > 1 &&
          token.text.find('.') == std::string::npos) {
        out_.push_back({TokenKind::kNumber, token.text.substr(0, 1), token.space_before});
        token.text.erase(0, 1);
        token.space_before = false;
      } else if (token.kind == TokenKind::kWord && !is_unit(token.text)) {
        out_.push_back({TokenKind::kLetter, token.text.substr(0, 1), token.space_before});
        token.text.erase(0, 1);
        if (token.text.size() == 1) token.kind = TokenKind::kLetter;
      } else if (!token.is("}") && !closes(token)) {
        item(depth + 1);
      }
    }
    symbol("}");
  }

  void group(int depth, std::string_view close) {
    copy();
    int open = 0;
    while (at_ < in_.size()) {
      if (in_[at_].is(close) && open == 0) return copy();
      if (in_[at_].is("{")) ++open;
      if (in_[at_].is("}")) --open;
      item(depth + 1);
    }
  }

  // "x^(1/2)", "sqrt(2)": the brackets are the braces.
  void bracketed(int depth) {
    symbol("{");
    ++at_;
    int open = 0;
    while (at_ < in_.size()) {
      if (in_[at_].is(")") && open-- == 0) {
        ++at_;
        break;
      }
      if (in_[at_].is("(")) ++open;
      item(depth + 1);
    }
    symbol("}");
  }

  Tokens in_;
  Tokens out_;
  std::size_t at_ = 0;
};

bool is_unit_token(const Token& token) {
  return (token.kind == TokenKind::kText && !kTellingText.contains(lower(token.text))) ||
         (token.kind == TokenKind::kWord && is_unit(token.text));
}

// Where decorations at the right end start; at least one token is left.
std::size_t decorations(const Tokens& tokens) {
  std::size_t end = tokens.size();
  for (bool more = true; more && end > 1;) {
    more = false;
    if (tokens[end - 1].is("%") || is_unit_token(tokens[end - 1])) {
      --end;
      more = true;
    } else if (end > 4 && tokens[end - 1].is("}") && tokens[end - 3].is("{") &&
               tokens[end - 4].is("^") &&
               (tokens[end - 2].is_command("circ") || is_unit_token(tokens[end - 5]))) {
      end -= 4;
      more = true;
    }
  }
  return end;
}

}  // namespace

bool is_unit(std::string_view word) { return kUnits.contains(word); }

std::string canonical_digits(std::string_view digits) {
  const std::size_t point = digits.find('.');
  std::string_view whole = digits.substr(0, point);
  whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
  std::string text(whole.empty() ? std::string_view("0") : whole);
  if (point == std::string_view::npos) return text;
  std::string_view decimals = digits.substr(point + 1);
  while (decimals.ends_with('0')) decimals.remove_suffix(1);
  if (!decimals.empty()) text += "." + std::string(decimals);
  return text;
}

Tokenized tokenize(std::string_view answer) {
  Tokenized out;
  Lexer(out).run(answer, 0);
  trim_edges(out.tokens);
  join_thousands(out.tokens);
  out.tokens = Braces(std::move(out.tokens)).run();
  return out;
}

std::string canonical_text(const Tokens& tokens) {
  std::string text;
  const std::size_t end = decorations(tokens);
  for (std::size_t i = 0; i < end; ++i) {
    const Token& token = tokens[i];
    switch (token.kind) {
      case TokenKind::kNumber:
        text += canonical_digits(token.text);
        break;
      case TokenKind::kCommand:
        text += "\\" + token.text + " ";
        break;
      case TokenKind::kBegin:
      case TokenKind::kEnd:
        text += "\\" + token.text + "|";
        break;
      case TokenKind::kText:
        for (const char c : token.text) {
          if (!is_space(c)) text += c;
        }
        break;
      default:
        if (i > 0 || !token.is("+")) text += token.text;
    }
  }
  return text;
}

std::string words_of(const Tokens& tokens) {
  std::string words;
  std::size_t begin = 0;
  std::size_t end = tokens.size();
  if (end == 3 && tokens[1].kind == TokenKind::kLetter && opens(tokens[0]) && closes(tokens[2])) {
    begin = 1;
    end = 2;
  }
  bool any_letter = false, any_word = false, any_number = false;
  for (std::size_t i = begin; i < end; ++i) {
    const Token& token = tokens[i];
    const bool word = token.kind == TokenKind::kWord || token.kind == TokenKind::kText;
    const bool number = token.kind == TokenKind::kNumber;
    const bool letter = token.kind == TokenKind::kLetter || token.is("and") || token.is("or");
    if (!word && !letter && !number) return "";
    any_word = any_word || word;
    any_number = any_number || number;
    any_letter = any_letter || letter || word;
    for (const char c : token.text) {
      if (!is_space(c)) words += to_lower(c);
    }
  }
  return any_letter && (any_word || !any_number) ? words : "";
}

}  // namespace asdbench::math
