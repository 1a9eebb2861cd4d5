// Remembers the ids of pre-tokens, since text repeats its words.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "eval/core/token_id.h"

namespace asdbench {

/// A bounded map from pre-token to ids; safe for several threads. At most 65,536 entries of at most
/// 64 bytes (some 20 MB); a full shard is emptied, which costs little and needs no order of use.
class TokenCache {
 public:
  static constexpr std::size_t kMaxKeyBytes = 64;

  /// Appends the ids of `key` to `out`; false when they are not known.
  bool append(std::string_view key, std::vector<TokenId>& out) {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.entries.find(key);
    if (found == shard.entries.end()) return false;
    out.insert(out.end(), found->second.begin(), found->second.end());
    return true;
  }

  /// Keeps `ids` for `key`, which has at most kMaxKeyBytes bytes.
  void insert(std::string_view key, const std::vector<TokenId>& ids) {
    Shard& shard = shard_of(key);
    const std::lock_guard lock(shard.mutex);
    if (shard.entries.size() >= kShardEntries) shard.entries.clear();
    shard.entries.emplace(key, ids);
  }

 private:
  static constexpr std::size_t kShards = 16;
  static constexpr std::size_t kShardEntries = 4096;

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const {
      return std::hash<std::string_view>{}(key);
    }
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::vector<TokenId>, Hash, std::equal_to<>> entries;
  };

  // Length and outer bytes spread words well enough, and leave the full hash to the map.
  Shard& shard_of(std::string_view key) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(key[i]); };
    return shards_[(key.size() + std::size_t{byte(key.size() / 2)} * 5 + byte(key.size() - 1)) %
                   kShards];
  }

  std::array<Shard, kShards> shards_;
};

}  // namespace asdbench
