// JSON with bounded depth, and the canonical text that hashes and identities are taken over.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace asdbench {

using Json = nlohmann::json;

/// Parses hostile text: depth is bounded before a tree is built, duplicate keys and invalid UTF-8
/// are refused. DataError with byte offset on failure.
Json parse_json(std::string_view text, int max_depth = 64);

/// Keys sorted by code point, no spaces, UTF-8 unescaped except what JSON requires, integers only
/// (specs: measurement, section 10). A real number has to be passed as `shortest_real(x)`, a
/// string. InternalError on a float.
std::string canonical_json(const Json& value);

/// The shortest decimal form that reads back to the same value; "inf", "-inf" for infinities.
std::string shortest_real(double value);

}  // namespace asdbench
