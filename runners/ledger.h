// The regret that one request has spent. Follows the request, never the slot.
#pragma once

namespace asdbench {

/// Created at 0 after prefill, kept over every block, dropped when the request ends (specs: asd,
/// section 7).
class Ledger {
 public:
  Ledger() = default;
  explicit Ledger(double spent) : spent_(spent) {}

  /// Regret spent so far, nats.
  double spent() const { return spent_; }
  /// Charges the running sum of the block's kept exceptions. The expression is the one that the
  /// budget test used, so spent <= B holds in floating point without a tolerance.
  void charge(double block_regret) { spent_ = spent_ + block_regret; }

 private:
  double spent_ = 0;
};

}  // namespace asdbench
