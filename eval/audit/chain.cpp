// Hashes over canonical bodies.
#include "eval/audit/chain.h"

#include <fmt/format.h>

#include "eval/core/digest.h"
#include "eval/core/error.h"

namespace asdbench {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

const std::string kChainStart(64, '0');

std::string bytes_of_hash(const std::string& hex, const char* what) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    const int high = hex_digit(hex[i]);
    const int low = hex_digit(hex[i + 1]);
    if (high < 0 || low < 0) break;
    bytes += static_cast<char>(high << 4 | low);
  }
  if (hex.size() != 64 || bytes.size() != 32) {
    throw DataError(
        fmt::format("{}: found {}; expected 64 lower-case hex digits", what, shown(hex)));
  }
  return bytes;
}

std::string chain_hash(const std::string& prev, const Json& body) {
  Sha256 digest;
  digest.update(bytes_of_hash(prev, "prev of a record"));
  try {
    digest.update(canonical_json(body));
  } catch (const InternalError&) {
    throw DataError("a record holds a real number; expected integers and text only");
  }
  return digest.finish_hex();
}

const std::string& head_of(std::span<const ChainRecord> chain) {
  return chain.empty() ? kChainStart : chain.back().hash;
}

ChainRecord next_record(std::span<const ChainRecord> chain, Json body) {
  body["seq"] = chain.size();
  ChainRecord record{.body = std::move(body), .prev = head_of(chain), .hash = ""};
  record.hash = chain_hash(record.prev, record.body);
  return record;
}

std::optional<std::size_t> first_bad_record(std::span<const ChainRecord> chain) {
  const std::string* prev = &kChainStart;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const ChainRecord& record = chain[i];
    if (!record.body.is_object() || record.prev != *prev) return i;
    const auto seq = record.body.find("seq");
    if (seq == record.body.end() || !seq->is_number_integer() || *seq != i) return i;
    try {
      if (chain_hash(record.prev, record.body) != record.hash) return i;
    } catch (const DataError&) {
      return i;
    }
    prev = &record.hash;
  }
  return std::nullopt;
}

}  // namespace asdbench
