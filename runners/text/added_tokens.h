// Finds added tokens inside a text: leftmost, longest.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eval/core/token_id.h"

namespace asdbench {

struct AddedMatch {
  std::size_t begin = 0;  // bytes
  std::size_t end = 0;
  TokenId id = kNoToken;  // kNoToken when nothing was found: begin and end are the text's size
};

class AddedMatcher {
 public:
  /// Contents are distinct and not empty (the tokenizer checks).
  explicit AddedMatcher(std::vector<std::pair<std::string, TokenId>> contents);

  /// The first match at or after `from`, the longest of those that start there.
  AddedMatch find(std::string_view text, std::size_t from) const;
  bool empty() const { return contents_.empty(); }

 private:
  AddedMatch longest_at(std::string_view text, std::size_t begin) const;

  std::vector<std::pair<std::string, TokenId>> contents_;  // sorted by content
  std::bitset<256> first_bytes_;
};

}  // namespace asdbench
