// The record chain: every record holds the hash of the one before it. Source:
// specs/measurement.md, section 10.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/core/json.h"

namespace asdbench {

/// `body` is an object with `seq` counting from 0; `prev` and `hash` are 64 hex digits.
struct ChainRecord {
  Json body;
  std::string prev;
  std::string hash;
};
using Chain = std::vector<ChainRecord>;

/// What the first record names as the hash before it: 32 zero bytes.
extern const std::string kChainStart;

/// The 32 bytes that 64 lower-case hex digits stand for. DataError that names `what` for others.
std::string bytes_of_hash(const std::string& hex, const char* what);

/// SHA-256 of the 32 bytes of `prev` and the canonical text of `body`. DataError when `prev` is not
/// 64 lower-case hex digits or the body holds a real number.
std::string chain_hash(const std::string& prev, const Json& body);

/// The record that follows `chain`: `seq`, `prev` and `hash` are added to `body`.
ChainRecord next_record(std::span<const ChainRecord> chain, Json body);

/// Index of the first record whose `seq`, `prev` or `hash` is wrong. A chain by itself does not
/// protect its last record: compare the head with a copy kept elsewhere.
std::optional<std::size_t> first_bad_record(std::span<const ChainRecord> chain);

/// Hash of the last record; kChainStart for an empty chain.
const std::string& head_of(std::span<const ChainRecord> chain);

}  // namespace asdbench
