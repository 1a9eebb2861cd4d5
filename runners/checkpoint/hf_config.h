// config.json of HF checkpoints, in the spellings of transformers 4 and 5; for this folder only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/json.h"
#include "runners/checkpoint/checkpoint.h"

namespace asdbench {

/// An object whose members are read with their type; null counts as absent. ModelError kBadConfig.
class ConfigSection {
 public:
  /// `json` must outlive the section.
  ConfigSection(const Json& json, std::string where);

  const std::string& where() const { return where_; }
  const Json& json() const { return json_; }

  const Json* find(std::string_view key) const;
  const Json& at(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;
  std::int64_t integer_or(std::string_view key, std::int64_t fallback) const;
  std::vector<std::int64_t> integers(std::string_view key) const;
  double number(std::string_view key) const;
  bool flag_or(std::string_view key, bool fallback) const;
  std::string text(std::string_view key) const;

  /// ModelError kUnsupported for a key that nobody asked for, unless it is among `harmless`, or
  /// false.
  void refuse_unasked(std::span<const std::string_view> harmless) const;

 private:
  [[noreturn]] void expected(std::string_view key, const char* what, const Json& found) const;

  const Json& json_;
  std::string where_;
  mutable std::set<std::string, std::less<>> asked_;
};

/// rope_theta and scaling, in both spellings (specs: targets, section 2). ModelError.
void read_rope(const ConfigSection& config, ModelConfig& out);

/// Refuses keys whose values ask for another computation than ours. ModelError kUnsupported.
void refuse_variants(const ConfigSection& config);

/// Reads and checks a configuration (specs: targets, section 2). `tied_head` is what the file says;
/// whether the head is there is for the caller to see. `where` stands in messages.
/// Errors: ModelError kUnknownArch, kUnsupported, kBadConfig.
ModelConfig read_hf_config(const Json& json, const std::string& where);

/// `eos_token_id` of an object: one id or a list; nullopt when it is absent or null.
std::optional<std::vector<TokenId>> read_end_ids(const Json& json, const std::string& where);

}  // namespace asdbench
