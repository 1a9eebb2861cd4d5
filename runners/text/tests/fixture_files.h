// The vendored tokenizer fixtures.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "eval/core/json.h"
#include "runners/text/tokenizer.h"

namespace asdbench::testing {

inline std::filesystem::path tokenizer_folder(const std::string& family) {
  return std::filesystem::path(ASDBENCH_TEST_DATA) / "tokenizers" / family;
}

inline std::unique_ptr<Tokenizer> load_tokenizer(const std::string& family) {
  return std::make_unique<Tokenizer>(
      read_tokenizer_json(tokenizer_folder(family) / "tokenizer.json"));
}

/// The objects of a JSON Lines file; throws when it has none.
inline std::vector<Json> read_lines(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<Json> out;
  for (std::string line; std::getline(in, line);) out.push_back(parse_json(line));
  if (out.empty()) throw std::runtime_error("no cases in " + path.string());
  return out;
}

/// The list under `key`, or the runs under `key_rle`; `fallback` when neither is there.
inline std::vector<TokenId> read_ids(const Json& entry, const std::string& key,
                                     const std::vector<TokenId>& fallback = {}) {
  if (entry.contains(key)) return entry.at(key).get<std::vector<TokenId>>();
  if (!entry.contains(key + "_rle")) return fallback;
  std::vector<TokenId> ids;
  for (const Json& run : entry.at(key + "_rle")) {
    ids.insert(ids.end(), run.at(1).get<std::size_t>(), run.at(0).get<TokenId>());
  }
  return ids;
}

}  // namespace asdbench::testing
