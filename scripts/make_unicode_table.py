#!/usr/bin/env python3
"""Writes runners/text/unicode_ranges.cpp: the letters, numbers and white space of Unicode 16.

    python3 -m pip install --target unicode unicodedata2==16.0.0
    PYTHONPATH=unicode scripts/make_unicode_table.py > runners/text/unicode_ranges.cpp

Version 16 is what the regular expressions of Hugging Face's tokenizers 0.23 use: letters, numbers and white space were
compared over all code points and are equal. Python's own unicodedata is older.
"""
import sys

import unicodedata2

# White_Space of PropList.txt: the general category does not give it.
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
               0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
LIMIT = 0x110000


def class_of(code_point):
    if code_point in WHITE_SPACE:
        return "kSpace"
    major = unicodedata2.category(chr(code_point))[0]
    return {"L": "kLetter", "N": "kNumber"}.get(major)


def ranges():
    start = 0
    for code_point in range(1, LIMIT + 1):
        if code_point == LIMIT or class_of(code_point) != class_of(start):
            if class_of(start):
                yield start, code_point - 1, class_of(start)
            start = code_point


def main():
    if unicodedata2.unidata_version != "16.0.0":
        sys.exit(f"unicodedata2 {unicodedata2.unidata_version} found, 16.0.0 expected: see the top of this file")
    entries = [f"{{0x{first:X}, 0x{last:X}, {kind}}}," for first, last, kind in ranges()]
    lines, line = [], "   "
    for entry in entries:
        if len(line) + 1 + len(entry) > 100:
            lines.append(line)
            line = "   "
        line += " " + entry
    lines.append(line)
    print(f"""\
// Letters, numbers and white space of Unicode {unicodedata2.unidata_version}, written by scripts/make_unicode_table.py.
#include "runners/text/unicode_table.h"

namespace asdbench {{
namespace {{

using enum CharClass;

// clang-format off
constexpr UnicodeRange kRanges[] = {{
{chr(10).join(lines)}
}};
// clang-format on

}}  // namespace

std::span<const UnicodeRange> unicode_ranges() {{ return kRanges; }}

}}  // namespace asdbench""")


if __name__ == "__main__":
    main()
