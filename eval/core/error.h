// The kinds of error that end a run, with the exit code each one has at the command line.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace asdbench {

/// Exit codes of the program (CONTRIBUTING.md). kPass and kFail are verdicts; the rest are reasons
/// to stop.
enum class ExitCode : int {
  kPass = 0,
  kFail = 1,
  kUsage = 2,
  kEnvironment = 3,
  kInternal = 4,
  kInconclusive = 5,
  kRefused = 6,
  kInterrupted = 130,
};

/// Base of all errors of ours. `what()` says where, what was found, what was expected and what to
/// do.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// The configuration or the command line is wrong.
struct ConfigError : Error {
  explicit ConfigError(const std::string& message) : Error(ExitCode::kUsage, message) {}
};

/// A data file is missing, damaged or not the one expected.
struct DataError : Error {
  explicit DataError(const std::string& message) : Error(ExitCode::kEnvironment, message) {}
};

/// What is wrong with a model file; all names but kBadWeights are those of the shared fixtures.
enum class ModelFault {
  kMissingFile,
  kTruncated,
  kBadHeader,
  kBadVersion,
  kBadOffsets,
  kBadDtype,
  kBadShape,
  kMissingTensor,
  kUnexpectedTensor,
  kDuplicateTensor,
  kUnknownArch,
  kUnsupported,
  kBadConfig,
  kBadWeights,  // NaN or an infinity among them
};

/// "missing_file", "truncated", ...
std::string_view name_of(ModelFault fault);

/// Weights, a tokenizer or a model configuration cannot be used.
class ModelError : public Error {
 public:
  ModelError(ModelFault fault, const std::string& message)
      : Error(ExitCode::kEnvironment, message), fault_(fault) {}
  ModelFault fault() const noexcept { return fault_; }

 private:
  ModelFault fault_;
};

/// A device is absent, out of memory or reported a failure.
struct DeviceError : Error {
  explicit DeviceError(const std::string& message) : Error(ExitCode::kEnvironment, message) {}
};

/// The results database cannot be opened, read or written.
struct StoreError : Error {
  explicit StoreError(const std::string& message) : Error(ExitCode::kEnvironment, message) {}
};

/// What makes a block impossible to decide (specs: asd, section 10), in the order in which it is
/// reported.
enum class BlockFault { kBadControl, kLedgerExceedsBudget, kTokenOutOfRange, kNonfiniteLogit };

/// "bad_control", "ledger_exceeds_budget", "token_out_of_range", "nonfinite_logit".
std::string_view name_of(BlockFault fault);

/// One block cannot be decided: its request fails, its ledger stays as it was, other requests go
/// on.
class BlockError : public Error {
 public:
  BlockError(BlockFault fault, const std::string& message)
      : Error(ExitCode::kInternal, message), fault_(fault) {}
  BlockFault fault() const noexcept { return fault_; }

 private:
  BlockFault fault_;
};

/// A mistake of ours.
struct InternalError : Error {
  explicit InternalError(const std::string& message) : Error(ExitCode::kInternal, message) {}
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& detail);

/// Foreign text for an error message: in quotes, cut after some 80 bytes, control characters and
/// ill-formed bytes as \xNN.
std::string shown(std::string_view foreign);

/// The known name nearest to `name` by edit distance, or "" when none is near enough to suggest.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// "\n  known: a, b, c; did you mean \"b\"?" for the end of an error message. `known` is printed
/// sorted.
std::string known_names(std::string_view found, std::vector<std::string> known);

}  // namespace asdbench

/// Active in every build: a broken invariant must never become a wrong number.
#define ASDBENCH_CHECK(condition, detail)                                                 \
  do {                                                                                    \
    if (!(condition)) ::asdbench::check_failed(__FILE__, __LINE__, #condition, (detail)); \
  } while (false)
