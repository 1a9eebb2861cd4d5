// Golden values of a tiny model (shared fixtures, models/README.md), and a target driven step by
// step.
#pragma once

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "eval/core/json.h"
#include "runners/target.h"

namespace asdbench::testing {

inline std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// golden.json with the arrays of golden.bin.
struct Golden {
  Json json;
  std::map<std::string, std::vector<float>, std::less<>> arrays;

  explicit Golden(const std::filesystem::path& folder)
      : json(parse_json(read_all(folder / "golden.json"))) {
    const std::string bytes = read_all(folder / "golden.bin");
    for (const Json& array : json.at("arrays")) {
      std::size_t count = 1;
      for (const Json& size : array.at("shape")) count *= size.get<std::size_t>();
      std::vector<float> values(count);
      std::memcpy(values.data(), bytes.data() + array.at("offset").get<std::size_t>(),
                  count * sizeof(float));
      arrays.emplace(array.at("name").get<std::string>(), std::move(values));
    }
  }
};

using Rows = std::vector<std::vector<float>>;

/// Host rows of a step, copied; none when the target keeps them.
inline Rows rows_of(const StepView& view) {
  Rows rows;
  if (view.logits.data == nullptr) return rows;
  for (std::int64_t i = 0; i < view.logits.rows; ++i) {
    const auto row = view.logits.row(i);
    rows.emplace_back(row.begin(), row.end());
  }
  return rows;
}

/// A request and its slot, advanced by hand: what is kept is the caller's choice.
class Walk {
 public:
  Walk(Target& target, std::vector<TokenId> prompt, std::int32_t slot = 0)
      : target_(target), request_("walk", std::move(prompt), {.max_tokens = 1000}, {}, Rng()) {
    request_.slot = slot;
  }

  /// Prefills and commits `next` (its own choice when it is kNoToken); the scored row, when host
  /// rows were asked for.
  std::vector<float> start(TokenId next = kNoToken) {
    const StepView view = target_.prefill(request_);
    const TokenId token = next == kNoToken ? view.scores.choice[0] : next;
    Rows rows = rows_of(view);
    request_.commit_first(token, 1000);
    return rows.empty() ? std::vector<float>() : std::move(rows[0]);
  }
  /// One step over `drafts`; nothing is kept yet.
  Rows verify(const std::vector<TokenId>& drafts) {
    request_.draft.assign(drafts.begin(), drafts.end());
    Request* live[] = {&request_};
    return rows_of(target_.forward(live));
  }
  /// Keeps the first `drafts` drafts of the last step, and commits `next` after them.
  void keep(std::int32_t drafts, TokenId next) {
    target_.keep(request_, drafts);
    Kept kept;
    kept.drafts = drafts;
    kept.target_token = true;
    std::copy_n(request_.draft.begin(), drafts, kept.tokens.begin());
    kept.tokens[static_cast<std::size_t>(drafts)] = next;
    request_.commit(kept, Decision());
  }
  Request& request() { return request_; }

 private:
  Target& target_;
  Request request_;
};

}  // namespace asdbench::testing
