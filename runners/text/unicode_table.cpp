// Expands the generated ranges into one class per code point.
#include "runners/text/unicode_table.h"

#include <algorithm>
#include <vector>

namespace asdbench {

const CharClass* char_classes() {
  // One byte per code point (1.1 MB): a lookup is one load, and text touches few pages of it.
  static const std::vector<CharClass> kClasses = [] {
    std::vector<CharClass> table(kCodePointLimit, CharClass::kOther);
    for (const UnicodeRange& range : unicode_ranges()) {
      std::fill(table.begin() + range.first, table.begin() + range.last + 1, range.char_class);
    }
    return table;
  }();
  return kClasses.data();
}

}  // namespace asdbench
