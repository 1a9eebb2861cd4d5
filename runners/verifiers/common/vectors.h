// Published cases of the rules against this build: what conformance and the tests both run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "eval/core/json.h"

namespace asdbench {

/// Why a case does not hold.
struct VectorMismatch {
  std::string expected;
  std::string got;
};

/// One JSON object a line. DataError, with file and line, when it cannot be read.
std::vector<Json> read_vectors(const std::filesystem::path& path);

/// Replays an ASD case, "block" or "sequence", under both tie policies: decide, cut, charge.
/// nullopt when everything that the case expects holds. A field or kind that is not known, and a
/// shape that does not fit, are mismatches.
///
/// Source:  specs/asd.md, section 11.
std::optional<VectorMismatch> check_asd_vector(const Json& row);

/// One rule over one block: the case it is, and why it does not hold.
struct MaskOutcome {
  std::string id;
  std::optional<VectorMismatch> mismatch;
};

/// Replays a block under every rule that the case lists; one outcome a rule. A rule, control or
/// field that is not known is a mismatch.
///
/// Source:  specs/verifiers.md, section 3.
std::vector<MaskOutcome> check_mask_vector(const Json& row);

}  // namespace asdbench
